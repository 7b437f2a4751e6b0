/* A driver in host memory with the symbols and types of NVIDIA's cuda.h, so that the test of the pipeline has one to
 * load where there is no GPU. Not a GPU and no measure of one: its device says so by name.
 *
 * A copy waits in its stream until an event behind it was asked for twice, or the stream is synchronized; so a slot
 * that is read into too early gives wrong bytes. Copies from memory that was not registered, or to memory that was not
 * allocated, are refused. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, INVALID_HANDLE = 400, NOT_READY = 600, MOST = 4096 };

typedef struct { unsigned char *to; const unsigned char *from; size_t length; } Copy;
typedef struct { Copy copies[MOST]; size_t asked, done; } Stream;
typedef struct { Stream *stream; size_t at; int queries; } Event;

static unsigned char *device, *pinned;
static size_t device_bytes, pinned_bytes;
static int open_things;

static void run(Stream *stream, size_t until) {
    for (; stream->done < until; stream->done++) {
        Copy *copy = &stream->copies[stream->done % MOST];
        memcpy(copy->to, copy->from, copy->length);
    }
}

static int on_device(unsigned long long address, size_t length) {
    unsigned long long base = (uintptr_t)device;
    return device && address >= base && length <= device_bytes && address - base <= device_bytes - length;
}

int double_open_things(void) { return open_things; }
int cuInit(unsigned int flags) { return flags ? INVALID_VALUE : SUCCESS; }
int cuGetErrorName(int error, const char **text) { *text = error == INVALID_VALUE ? "INVALID_VALUE" : "OTHER"; return 0; }
int cuDriverGetVersion(int *version) { *version = 0; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *one, int ordinal) { *one = ordinal; return ordinal ? INVALID_VALUE : 0; }
int cuDeviceGetName(char *name, int length, int one) {
    (void)one;
    strncpy(name, "a double in host memory, no GPU", (size_t)length);
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int one) { (void)one; *context = &open_things; open_things++; return 0; }
int cuDevicePrimaryCtxRelease_v2(int one) { open_things--; return one; }
int cuCtxSetCurrent(void *context) { return context == &open_things ? 0 : INVALID_HANDLE; }
int cuMemAlloc_v2(unsigned long long *address, size_t length) {
    device = malloc(device_bytes = length);
    *address = (uintptr_t)device;
    open_things++;
    return 0;
}
int cuMemFree_v2(unsigned long long address) {
    if (address != (uintptr_t)device) return INVALID_VALUE;
    free(device);
    device = NULL;
    open_things--;
    return 0;
}
int cuMemHostRegister_v2(void *memory, size_t length, unsigned int flags) {
    if ((uintptr_t)memory % 4096 || flags != 1) return INVALID_VALUE;
    pinned = memory;
    pinned_bytes = length;
    open_things++;
    return 0;
}
int cuMemHostUnregister(void *memory) { open_things--; return memory == pinned ? 0 : INVALID_VALUE; }
int cuMemsetD8_v2(unsigned long long to, unsigned char value, size_t length) {
    if (!on_device(to, length)) return INVALID_VALUE;
    memset((void *)(uintptr_t)to, value, length);
    return 0;
}
int cuCtxSynchronize(void) { return 0; }
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t length, void *handle) {
    Stream *stream = handle;
    const unsigned char *first = from;
    if (!on_device(to, length) || first < pinned || first + length > pinned + pinned_bytes) return INVALID_VALUE;
    if (stream->asked - stream->done == MOST) return INVALID_VALUE;
    stream->copies[stream->asked++ % MOST] = (Copy){(unsigned char *)(uintptr_t)to, first, length};
    return 0;
}
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t length) {
    if (!on_device(from, length)) return INVALID_VALUE;
    memcpy(to, (const void *)(uintptr_t)from, length);
    return 0;
}
int cuStreamCreate(void **stream, unsigned int flags) { *stream = calloc(1, sizeof(Stream)); open_things++; return flags != 1; }
int cuStreamSynchronize(void *stream) { run(stream, ((Stream *)stream)->asked); return 0; }
int cuStreamDestroy_v2(void *stream) { free(stream); open_things--; return 0; }
int cuEventCreate(void **event, unsigned int flags) { *event = calloc(1, sizeof(Event)); open_things++; return flags != 2; }
int cuEventRecord(void *handle, void *stream) {
    *(Event *)handle = (Event){stream, ((Stream *)stream)->asked, 0};
    return 0;
}
int cuEventQuery(void *handle) {
    Event *event = handle;
    if (event->queries++ == 0) return NOT_READY;
    run(event->stream, event->at);
    return 0;
}
int cuEventDestroy_v2(void *event) { free(event); open_things--; return 0; }
