/*
 * Carries out posts without the interpreter: by io_uring, or by threads where there is none or where the kernel would
 * only copy memory. Plain C with the C library alone: no header of Python, so that gcc is all that a build needs.
 * core.py is its only caller, and says what each call does.
 *
 * A job is a post; a part is one range of the device with its memory. Parts of a job are carried out in any order.
 * Threads take parts; a ring takes as many as its completion queue holds, the rest wait here.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#define EARLY (-1)               /* the device ended before the part did */
#define TMPFS_MAGIC 0x01021994   /* linux/magic.h */
#define RAMFS_MAGIC 0x858458f6
#define MOST_ENTRIES 4096
#define MOST_BYTES 0x7ffff000u   /* Linux moves no more in one call: read(2) */
#ifndef IORING_SETUP_COOP_TASKRUN
#define IORING_SETUP_COOP_TASKRUN (1U << 8)
#endif

enum { OP_READ, OP_WRITE, OP_SYNC, OP_WRITE_DURABLE }; /* as in core.py */

struct job;

struct part {
	struct job *job;
	struct part *next;
	uint64_t offset, length;
	char *memory;
};

struct job {
	struct job *previous, *next; /* of all that have not been told as ended */
	struct job *ended;
	uint64_t token;
	int op, error;
	_Atomic int cancelled;
	size_t left;
	struct part parts[];
};

struct ring {
	int fd;
	unsigned entries, room, inflight;
	void *memory, *sqes_memory;
	size_t memory_bytes, sqes_bytes;
	_Atomic unsigned *sq_head, *sq_tail, *cq_head, *cq_tail;
	unsigned sq_mask, cq_mask, *array;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

struct arena {
	uint64_t base, size;
};

struct carrier {
	int fd, event, stopping;
	uint64_t length, unit; /* of the device */
	struct arena *arenas;  /* by number; changed by the caller's thread alone */
	size_t arena_count;
	pthread_mutex_t lock; /* over all below; a ring is used by one thread and needs none of it */
	pthread_cond_t work;
	unsigned idle, count;
	pthread_t *threads;
	struct part *first, *last; /* not begun */
	struct job jobs;           /* head of the circle of live ones */
	struct job *ended_first, *ended_last;
	int told;
	int has_ring;
	struct ring ring;
};

static void append(struct carrier *one, struct part *part)
{
	part->next = NULL;
	if (one->last)
		one->last->next = part;
	else
		one->first = part;
	one->last = part;
}

static void put_first(struct carrier *one, struct part *part)
{
	part->next = one->first;
	one->first = part;
	if (!one->last)
		one->last = part;
}

static struct part *take(struct carrier *one)
{
	struct part *part = one->first;

	one->first = part->next;
	if (!one->first)
		one->last = NULL;
	return part;
}

static void tell(const struct carrier *one)
{
	uint64_t word = 1;

	while (write(one->event, &word, sizeof word) < 0 && errno == EINTR)
		;
}

static void end_part(struct carrier *one, struct part *part, int error)
{
	struct job *job = part->job;

	if (error && !job->error)
		job->error = error;
	if (--job->left)
		return;
	job->ended = NULL;
	if (one->ended_last)
		one->ended_last->ended = job;
	else
		one->ended_first = job;
	one->ended_last = job;
	if (!one->told) {
		one->told = 1;
		tell(one);
	}
}

static int is_moot(const struct part *part)
{
	return part->job->cancelled || part->job->error;
}

/* ---- threads ---- */

static int carry_out(int fd, const struct part *part)
{
	char *memory = part->memory;
	uint64_t offset = part->offset, left = part->length;

	if (part->job->op == OP_SYNC)
		return fdatasync(fd) < 0 ? errno : 0;
	while (left) {
		size_t most = left > MOST_BYTES ? MOST_BYTES : left;
		struct iovec vector = {memory, most};
		int flags = part->job->op == OP_WRITE_DURABLE ? RWF_DSYNC : 0;
		ssize_t count = part->job->op == OP_READ ? pread(fd, memory, most, (off_t)offset)
							 : pwritev2(fd, &vector, 1, (off_t)offset, flags);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return errno;
		if (!count)
			return EARLY;
		memory += count;
		offset += (uint64_t)count;
		left -= (uint64_t)count;
	}
	return 0;
}

/* With the lock held, but for the call itself. */
static void carry_out_next(struct carrier *one)
{
	struct part *part = take(one);
	int error = 0;

	if (!is_moot(part)) {
		pthread_mutex_unlock(&one->lock);
		error = carry_out(one->fd, part);
		pthread_mutex_lock(&one->lock);
	}
	end_part(one, part, error);
}

static void *work(void *argument)
{
	struct carrier *one = argument;

	pthread_mutex_lock(&one->lock);
	for (;;) {
		while (!one->first && !one->stopping) {
			one->idle++;
			pthread_cond_wait(&one->work, &one->lock);
			one->idle--;
		}
		if (!one->first)
			break;
		carry_out_next(one);
	}
	pthread_mutex_unlock(&one->lock);
	return NULL;
}

static int start_threads(struct carrier *one, unsigned count, const uint64_t *cpus)
{
	sigset_t all, before;
	const uint64_t *set = cpus;
	int error = 0;

	one->threads = calloc(count, sizeof *one->threads);
	if (!one->threads)
		return ENOMEM;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the interpreter's */
	while (one->count < count && !error) {
		error = pthread_create(&one->threads[one->count], NULL, work, one);
		if (!error && set && *set) {
			cpu_set_t wanted;
			CPU_ZERO(&wanted);
			for (uint64_t index = 1; index <= *set; index++)
				if (set[index] < CPU_SETSIZE)
					CPU_SET(set[index], &wanted);
			pthread_setaffinity_np(one->threads[one->count], sizeof wanted, &wanted);
			set += *set + 1;
			set = *set ? set : cpus;
		}
		if (!error)
			one->count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

/* ---- io_uring ---- */

static int enter(const struct ring *ring, unsigned submit, unsigned least)
{
	return (int)syscall(__NR_io_uring_enter, ring->fd, submit, least, least ? IORING_ENTER_GETEVENTS : 0, NULL, 0);
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

static int open_ring(struct carrier *one, unsigned entries)
{
	struct ring *ring = &one->ring;
	struct io_uring_params params = {.flags = IORING_SETUP_COOP_TASKRUN};
	size_t sq_bytes, cq_bytes;
	char *base;

	entries = entries > MOST_ENTRIES ? MOST_ENTRIES : entries;
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
	    syscall(__NR_io_uring_register, ring->fd, IORING_REGISTER_EVENTFD, &one->event, 1) < 0) {
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
	ring->room = params.cq_entries; /* never more in flight, so that no completion finds the queue full */
	one->told = 1;                  /* the kernel tells */
	one->has_ring = 1;
	return 0;
}

static void describe(struct io_uring_sqe *sqe, int fd, struct part *part)
{
	static const uint8_t codes[] = {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC, IORING_OP_WRITE};

	memset(sqe, 0, sizeof *sqe);
	sqe->opcode = codes[part->job->op];
	sqe->fd = fd;
	sqe->user_data = (uint64_t)(uintptr_t)part;
	if (part->job->op == OP_SYNC) {
		sqe->fsync_flags = IORING_FSYNC_DATASYNC;
		return;
	}
	if (part->job->op == OP_WRITE_DURABLE)
		sqe->rw_flags = RWF_DSYNC;
	sqe->addr = (uint64_t)(uintptr_t)part->memory;
	sqe->len = part->length > MOST_BYTES ? MOST_BYTES : (uint32_t)part->length;
	sqe->off = part->offset;
}

/* Hands over what there is room for. Returns whether a part ended here, without the kernel. */
static int pump(struct carrier *one)
{
	struct ring *ring = &one->ring;
	int ended = 0;

	for (;;) {
		unsigned tail = atomic_load_explicit(ring->sq_tail, memory_order_relaxed);
		unsigned head = atomic_load_explicit(ring->sq_head, memory_order_acquire);
		int count;

		while (one->first && tail - head < ring->entries && ring->inflight < ring->room) {
			struct part *part = take(one);
			if (is_moot(part)) {
				end_part(one, part, 0);
				ended = 1;
				continue;
			}
			describe(&ring->sqes[tail & ring->sq_mask], one->fd, part);
			ring->array[tail & ring->sq_mask] = tail & ring->sq_mask;
			tail++;
			ring->inflight++;
		}
		atomic_store_explicit(ring->sq_tail, tail, memory_order_release);
		if (tail == head)
			return ended;
		count = enter(ring, tail - head, 0);
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0) { /* EAGAIN, EBUSY: the kernel is short of something; the next poll tries again */
			tell(one);
			return ended;
		}
		if (!one->first || ring->inflight >= ring->room)
			if (atomic_load_explicit(ring->sq_head, memory_order_acquire) == tail)
				return ended;
	}
}

static void reap(struct carrier *one)
{
	struct ring *ring = &one->ring;
	unsigned head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);

	while (head != atomic_load_explicit(ring->cq_tail, memory_order_acquire)) {
		struct io_uring_cqe *cqe = &ring->cqes[head & ring->cq_mask];
		struct part *part = (struct part *)(uintptr_t)cqe->user_data;
		int result = cqe->res;

		atomic_store_explicit(ring->cq_head, ++head, memory_order_release);
		ring->inflight--;
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
}

static void close_ring(struct carrier *one)
{
	struct ring *ring = &one->ring;

	for (;;) {
		pump(one); /* all is cancelled: it ends what was not begun, and hands over what stands in the queue */
		if (!ring->inflight)
			break;
		if (atomic_load(ring->sq_head) == atomic_load(ring->sq_tail))
			enter(ring, 0, 1);
		reap(one);
	}
	munmap(ring->memory, ring->memory_bytes);
	munmap(ring->sqes_memory, ring->sqes_bytes);
	close(ring->fd);
}

/* ---- what core.py calls ---- */

int block_in_memory(int fd)
{
	struct statfs found;

	if (fstatfs(fd, &found) < 0)
		return 0;
	return found.f_type == TMPFS_MAGIC || (unsigned long)found.f_type == RAMFS_MAGIC;
}

static void forget(struct job *job)
{
	job->previous->next = job->next;
	job->next->previous = job->previous;
	free(job);
}

void block_cancel(struct carrier *one, uint64_t token, int all)
{
	pthread_mutex_lock(&one->lock);
	for (struct job *job = one->jobs.next; job != &one->jobs; job = job->next)
		if (all || job->token == token)
			job->cancelled = 1;
	pthread_mutex_unlock(&one->lock);
}

void block_close(struct carrier *one)
{
	block_cancel(one, 0, 1);
	if (one->has_ring)
		close_ring(one);
	pthread_mutex_lock(&one->lock);
	one->stopping = 1;
	pthread_cond_broadcast(&one->work);
	pthread_mutex_unlock(&one->lock);
	for (unsigned index = 0; index < one->count; index++)
		pthread_join(one->threads[index], NULL);
	while (one->jobs.next != &one->jobs)
		forget(one->jobs.next);
	pthread_mutex_destroy(&one->lock);
	pthread_cond_destroy(&one->work);
	free(one->threads);
	free(one->arenas);
	free(one);
}

struct carrier *block_open(int fd, int event, uint64_t length, uint64_t unit, unsigned threads, const uint64_t *cpus,
			   unsigned entries, int *error)
{
	struct carrier *one = calloc(1, sizeof *one);

	if (!one) {
		*error = ENOMEM;
		return NULL;
	}
	one->fd = fd;
	one->event = event;
	one->length = length;
	one->unit = unit;
	one->jobs.next = one->jobs.previous = &one->jobs;
	pthread_mutex_init(&one->lock, NULL);
	pthread_cond_init(&one->work, NULL);
	*error = entries ? open_ring(one, entries) : start_threads(one, threads, cpus);
	if (*error) {
		block_close(one);
		return NULL;
	}
	return one;
}

int block_register(struct carrier *one, uint64_t base, uint64_t size)
{
	struct arena *more = realloc(one->arenas, (one->arena_count + 1) * sizeof *more);

	if (!more)
		return ENOMEM;
	one->arenas = more;
	more[one->arena_count++] = (struct arena){base, size};
	return 0;
}

static int fill(const struct carrier *one, struct part *part, uint64_t unit, uint64_t first, const uint64_t *view)
{
	uint64_t offset, length = view[2];

	if (view[0] >= one->arena_count || !length || length % one->unit || length > one->length)
		return EINVAL;
	if (first > one->length / unit || first * unit % one->unit || first * unit > one->length - length)
		return EINVAL;
	offset = view[1];
	if (length > one->arenas[view[0]].size || offset > one->arenas[view[0]].size - length)
		return EINVAL;
	part->offset = first * unit;
	part->length = length;
	part->memory = (char *)(uintptr_t)(one->arenas[view[0]].base + offset);
	return 0;
}

/* A job: token, op, count, bytes of a block, then the first block of each part, then arena, offset, length of each. */
static int make_job(const struct carrier *one, const uint64_t *words, struct job **made)
{
	size_t count = words[2], parts = count ? count : 1;
	const uint64_t *firsts = words + 4, *views = firsts + count;
	struct job *job = calloc(1, sizeof *job + parts * sizeof *job->parts);

	if (!job)
		return ENOMEM;
	*made = job;
	job->token = words[0];
	job->op = (int)words[1];
	job->left = parts;
	for (size_t index = 0; index < parts; index++)
		job->parts[index].job = job;
	if (!words[3] || (job->op != OP_SYNC) != (count > 0))
		return EINVAL;
	for (size_t index = 0; index < count; index++)
		if (fill(one, &job->parts[index], words[3], firsts[index], views + 3 * index))
			return EINVAL;
	return 0;
}

int block_put(struct carrier *one, const uint64_t *words, size_t count)
{
	struct job *chain = NULL, **end = &chain;
	size_t parts = 0;
	int told = 0;

	for (size_t at = 0; at < count; at += 4 + 4 * words[at + 2]) { /* a batch is taken whole or not at all */
		int error = make_job(one, words + at, end);
		if (error) {
			for (struct job *job = chain, *next; job; job = next) {
				next = job->ended;
				free(job);
			}
			return error;
		}
		parts += (*end)->left;
		end = &(*end)->ended;
	}
	pthread_mutex_lock(&one->lock);
	for (struct job *job = chain, *next; job; job = next) {
		size_t many = job->left;
		next = job->ended;
		job->previous = one->jobs.previous;
		job->next = &one->jobs;
		job->previous->next = job->next->previous = job;
		for (size_t index = 0; index < many; index++)
			append(one, &job->parts[index]);
	}
	if (!one->has_ring) {
		if (parts < one->idle)
			for (size_t index = 0; index < parts; index++)
				pthread_cond_signal(&one->work);
		else if (one->idle)
			pthread_cond_broadcast(&one->work);
	}
	pthread_mutex_unlock(&one->lock);
	if (one->has_ring)
		told = pump(one);
	return told ? -1 : 0;
}

size_t block_ended(struct carrier *one, int64_t *pairs, size_t most)
{
	uint64_t word;
	size_t count = 0;

	pthread_mutex_lock(&one->lock); /* a thread that tells holds it, so none tells between the read and the look */
	while (read(one->event, &word, sizeof word) < 0 && errno == EINTR)
		;
	if (!one->has_ring)
		one->told = 0;
	pthread_mutex_unlock(&one->lock);
	if (one->has_ring) {
		reap(one);
		if (one->first || one->ring.inflight)
			pump(one);
	}
	pthread_mutex_lock(&one->lock);
	while (one->ended_first && count < most) {
		struct job *job = one->ended_first;

		one->ended_first = job->ended;
		if (!one->ended_first)
			one->ended_last = NULL;
		pairs[2 * count] = (int64_t)job->token;
		pairs[2 * count + 1] = job->error;
		count++;
		forget(job);
	}
	pthread_mutex_unlock(&one->lock);
	return count;
}
