/*
 * An io_uring with one thread, which submits and reaps. It keeps as many parts in flight as it may, and hears of new ones
 * by an eventfd that it has the ring read. Memory that the ring could take is used by number. Source: io_uring(7).
 */

#include "core.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_ENTRIES 4096
#define MOST_BUFFERS 1024
#define SHARE 16            /* of what is in flight that may end before one wake-up */
#define PATIENCE_NS 200000  /* within this time */

static int enter(const struct ring *ring, unsigned submit, unsigned least)
{
	struct __kernel_timespec patience = {.tv_nsec = PATIENCE_NS};
	struct io_uring_getevents_arg more = {.ts = (uint64_t)(uintptr_t)&patience};

	if (least > 1)
		return (int)syscall(__NR_io_uring_enter, ring->fd, submit, least,
				    IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &more, sizeof more);
	return (int)syscall(__NR_io_uring_enter, ring->fd, submit, least, IORING_ENTER_GETEVENTS, NULL, 0);
}

static int supports_read(int fd)
{
	size_t bytes = sizeof(struct io_uring_probe) + 256 * sizeof(struct io_uring_probe_op);
	struct io_uring_probe *probe = calloc(1, bytes);
	int supported;

	if (!probe)
		return 0;
	supported = syscall(__NR_io_uring_register, fd, IORING_REGISTER_PROBE, probe, 256) >= 0 &&
		    probe->last_op >= IORING_OP_WRITE && (probe->ops[IORING_OP_READ].flags & IO_URING_OP_SUPPORTED);
	free(probe);
	return supported;
}

int open_ring(struct carrier *one, unsigned depth)
{
	struct io_uring_rsrc_register buffers = {.nr = MOST_BUFFERS, .flags = IORING_RSRC_REGISTER_SPARSE};
	struct ring *ring = &one->ring;
	struct io_uring_params params = {.flags = IORING_SETUP_COOP_TASKRUN};
	size_t sq_bytes, cq_bytes;
	char *base;

	unsigned entries = depth + 1 > MOST_ENTRIES ? MOST_ENTRIES : depth + 1;

	ring->fd = (int)syscall(__NR_io_uring_setup, entries, &params);
	if (ring->fd < 0 && errno == EINVAL) { /* before 5.19 */
		memset(&params, 0, sizeof params);
		ring->fd = (int)syscall(__NR_io_uring_setup, entries, &params);
	}
	if (ring->fd < 0)
		return errno;
	if (!(params.features & IORING_FEAT_SINGLE_MMAP) || !supports_read(ring->fd)) {
		close(ring->fd);
		return ENOSYS;
	}
	sq_bytes = params.sq_off.array + params.sq_entries * sizeof(unsigned);
	cq_bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	ring->memory_bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
	ring->sqes_bytes = params.sq_entries * sizeof(struct io_uring_sqe);
	ring->memory = mmap(NULL, ring->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd,
			    IORING_OFF_SQ_RING);
	ring->sqes_memory = mmap(NULL, ring->sqes_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd,
				 IORING_OFF_SQES);
	if (ring->memory == MAP_FAILED || ring->sqes_memory == MAP_FAILED ||
	    syscall(__NR_io_uring_register, ring->fd, IORING_REGISTER_FILES, &one->fd, 1) < 0 ||
	    (ring->kick = eventfd(0, EFD_CLOEXEC)) < 0) {
		int error = errno;
		if (ring->memory != MAP_FAILED)
			munmap(ring->memory, ring->memory_bytes);
		if (ring->sqes_memory != MAP_FAILED)
			munmap(ring->sqes_memory, ring->sqes_bytes);
		close(ring->fd);
		return error;
	}
	base = ring->memory;
	ring->sq_head = (_Atomic unsigned *)(void *)(base + params.sq_off.head);
	ring->sq_tail = (_Atomic unsigned *)(void *)(base + params.sq_off.tail);
	ring->cq_head = (_Atomic unsigned *)(void *)(base + params.cq_off.head);
	ring->cq_tail = (_Atomic unsigned *)(void *)(base + params.cq_off.tail);
	ring->sq_mask = *(unsigned *)(void *)(base + params.sq_off.ring_mask);
	ring->cq_mask = *(unsigned *)(void *)(base + params.cq_off.ring_mask);
	ring->array = (unsigned *)(void *)(base + params.sq_off.array);
	ring->cqes = (struct io_uring_cqe *)(void *)(base + params.cq_off.cqes);
	ring->sqes = ring->sqes_memory;
	ring->entries = params.sq_entries;
	ring->room = depth < params.cq_entries ? depth : params.cq_entries - 1; /* with the kick, never more than fit */
	ring->has_buffers = syscall(__NR_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS2, &buffers,
				    sizeof buffers) >= 0;
	ring->can_wait = (params.features & IORING_FEAT_EXT_ARG) != 0; /* 5.11 */
	one->has_ring = 1;
	return 0;
}

/* Gives the ring the pages of an arena, where the kernel can (5.19) and the limit of locked memory allows it. */
int fix(struct ring *ring, unsigned number, const struct arena *arena)
{
	struct iovec memory = {(void *)(uintptr_t)arena->base, arena->size};
	struct io_uring_rsrc_update2 update = {.offset = number, .data = (uint64_t)(uintptr_t)&memory, .nr = 1};

	if (!ring->has_buffers || number >= MOST_BUFFERS || !arena->size)
		return 0;
	return syscall(__NR_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS_UPDATE, &update, sizeof update) == 1;
}

static void describe(const struct carrier *one, struct io_uring_sqe *sqe, struct part *part)
{
	int fixed, writes = part->job->op == OP_WRITE || part->job->op == OP_WRITE_DURABLE;

	memset(sqe, 0, sizeof *sqe);
	sqe->flags = IOSQE_FIXED_FILE; /* number 0, the only one */
	sqe->user_data = (uint64_t)(uintptr_t)part;
	if (part->job->op == OP_SYNC) {
		sqe->opcode = IORING_OP_FSYNC;
		sqe->fsync_flags = IORING_FSYNC_DATASYNC;
		return;
	}
	fixed = one->arenas[part->arena].is_fixed;
	if (writes)
		sqe->opcode = fixed ? IORING_OP_WRITE_FIXED : IORING_OP_WRITE;
	else
		sqe->opcode = fixed ? IORING_OP_READ_FIXED : IORING_OP_READ;
	if (part->job->op == OP_WRITE_DURABLE)
		sqe->rw_flags = RWF_DSYNC;
	if (fixed)
		sqe->buf_index = (uint16_t)part->arena;
	sqe->addr = (uint64_t)(uintptr_t)part->memory;
	sqe->len = part->length > MOST_BYTES ? MOST_BYTES : (uint32_t)part->length;
	sqe->off = part->offset;
}

static void listen_for_kick(struct ring *ring, struct io_uring_sqe *sqe)
{
	memset(sqe, 0, sizeof *sqe);
	sqe->opcode = IORING_OP_READ;
	sqe->fd = ring->kick;
	sqe->addr = (uint64_t)(uintptr_t)&ring->word;
	sqe->len = sizeof ring->word;
	ring->hears = 1;
}

/* Puts what there is room for into the submission queue, and returns how much stands there. */
static unsigned prepare(struct carrier *one)
{
	struct ring *ring = &one->ring;
	unsigned tail = atomic_load_explicit(ring->sq_tail, memory_order_relaxed);
	unsigned head = atomic_load_explicit(ring->sq_head, memory_order_acquire);

	while (tail - head < ring->entries && (!ring->hears || (one->first && ring->inflight < ring->room))) {
		struct io_uring_sqe *sqe = &ring->sqes[tail & ring->sq_mask];
		if (!ring->hears) {
			listen_for_kick(ring, sqe);
		} else {
			struct part *part = take(one);
			if (is_moot(part)) {
				end_part(one, part, 0);
				continue;
			}
			describe(one, sqe, part);
			ring->inflight++;
		}
		ring->array[tail & ring->sq_mask] = tail & ring->sq_mask;
		tail++;
	}
	atomic_store_explicit(ring->sq_tail, tail, memory_order_release);
	return tail - head;
}

static void take_result(struct carrier *one, struct part *part, int result)
{
	if (!part) {
		one->ring.hears = 0;
		return;
	}
	one->ring.inflight--;
	if (result == -EINTR || result == -EAGAIN) {
		put_first(one, part);
	} else if (result < 0) {
		end_part(one, part, -result);
	} else if (part->job->op == OP_SYNC || (uint64_t)result == part->length) {
		end_part(one, part, 0);
	} else if (!result) {
		end_part(one, part, EARLY);
	} else {
		part->memory += result;
		part->offset += (uint64_t)result;
		part->length -= (uint64_t)result;
		put_first(one, part);
	}
}

static void reap(struct carrier *one)
{
	struct ring *ring = &one->ring;
	unsigned head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);

	while (head != atomic_load_explicit(ring->cq_tail, memory_order_acquire)) {
		struct io_uring_cqe cqe = ring->cqes[head & ring->cq_mask];

		atomic_store_explicit(ring->cq_head, ++head, memory_order_release);
		take_result(one, (struct part *)(uintptr_t)cqe.user_data, cqe.res);
	}
}

void kick(const struct ring *ring)
{
	uint64_t word = 1;

	while (write(ring->kick, &word, sizeof word) < 0 && errno == EINTR)
		;
}

/* The one thread of a ring: it submits and reaps, and wakes the caller when a whole job has ended. */
void *run_ring(void *argument)
{
	struct carrier *one = argument;
	struct ring *ring = &one->ring;
	int is_slow = 0;

	pthread_mutex_lock(&one->lock);
	for (;;) {
		unsigned waiting = prepare(one), before = ring->inflight;
		/* Many in flight: several ends for one wake-up, but none waits long for others. */
		unsigned least = ring->can_wait && !is_slow && before >= 2 * SHARE ? before / SHARE : 1;

		if (one->stopping && !one->first && !ring->inflight)
			break;
		ring->sleeps = 1;
		pthread_mutex_unlock(&one->lock);
		if (enter(ring, waiting, least) < 0 && errno != EINTR && errno != ETIME)
			sched_yield(); /* EAGAIN, EBUSY: the kernel is short of something */
		pthread_mutex_lock(&one->lock);
		ring->sleeps = 0;
		reap(one);
		is_slow = least > 1 && ring->inflight == before; /* nothing came in time: wait without a limit for one */
	}
	pthread_mutex_unlock(&one->lock);
	return NULL;
}

void close_ring(struct ring *ring)
{
	munmap(ring->memory, ring->memory_bytes);
	munmap(ring->sqes_memory, ring->sqes_bytes);
	close(ring->fd);
	close(ring->kick);
}
