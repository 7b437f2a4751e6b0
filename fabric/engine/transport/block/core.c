/*
 * Carries out posts without the interpreter: by io_uring, or by threads where there is none or where the kernel would
 * only copy memory. Plain C with the C library alone: no header of Python, so that gcc is all that a build needs.
 * core.py is its only caller, and says what each call does.
 *
 * A job is a post; a part is one range of the device with its memory. Parts of a job are carried out in any order.
 * Threads take a part each. A ring has one thread, which keeps as many in flight as it may; the rest wait here. Only
 * when a whole job has ended is the caller woken: what happens for each part costs nobody else anything.
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
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#define EARLY (-1)               /* the device ended before the part did */
#define TMPFS_MAGIC 0x01021994   /* linux/magic.h */
#define RAMFS_MAGIC 0x858458f6
#define MOST_ENTRIES 4096
#define MOST_BUFFERS 1024
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
	unsigned arena;
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
	int fd, kick; /* kick: an eventfd that the ring reads, so that it hears of new parts while it waits */
	int hears, sleeps, has_buffers;
	uint64_t word; /* where the kick is read to */
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
	int is_fixed; /* the ring has its pages: nothing is pinned and let go for each read */
};

struct carrier {
	int fd, event, stopping;
	uint64_t length, unit; /* of the device */
	struct arena *arenas;  /* by number */
	size_t arena_count;
	pthread_mutex_t lock; /* over all below, and the arenas */
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

static int start_threads(struct carrier *one, unsigned count, const uint64_t *cpus, void *(*run)(void *))
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
		error = pthread_create(&one->threads[one->count], NULL, run, one);
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

static int open_ring(struct carrier *one, unsigned depth)
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
	one->has_ring = 1;
	return 0;
}

/* Gives the ring the pages of an arena, where the kernel can (5.19) and the limit of locked memory allows it. */
static int fix(struct ring *ring, unsigned number, const struct arena *arena)
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

static void kick(const struct ring *ring)
{
	uint64_t word = 1;

	while (write(ring->kick, &word, sizeof word) < 0 && errno == EINTR)
		;
}

/* The one thread of a ring: it submits and reaps, and wakes the caller when a whole job has ended. */
static void *run_ring(void *argument)
{
	struct carrier *one = argument;
	struct ring *ring = &one->ring;

	pthread_mutex_lock(&one->lock);
	for (;;) {
		unsigned waiting = prepare(one);

		if (one->stopping && !one->first && !ring->inflight)
			break;
		ring->sleeps = 1;
		pthread_mutex_unlock(&one->lock);
		if (enter(ring, waiting, 1) < 0 && errno != EINTR)
			sched_yield(); /* EAGAIN, EBUSY: the kernel is short of something */
		pthread_mutex_lock(&one->lock);
		ring->sleeps = 0;
		reap(one);
	}
	pthread_mutex_unlock(&one->lock);
	return NULL;
}

static void close_ring(struct ring *ring)
{
	munmap(ring->memory, ring->memory_bytes);
	munmap(ring->sqes_memory, ring->sqes_bytes);
	close(ring->fd);
	close(ring->kick);
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
	pthread_mutex_lock(&one->lock);
	one->stopping = 1;
	if (one->has_ring)
		kick(&one->ring);
	pthread_cond_broadcast(&one->work);
	pthread_mutex_unlock(&one->lock);
	for (unsigned index = 0; index < one->count; index++)
		pthread_join(one->threads[index], NULL);
	if (one->has_ring)
		close_ring(&one->ring);
	while (one->jobs.next != &one->jobs)
		forget(one->jobs.next);
	pthread_mutex_destroy(&one->lock);
	pthread_cond_destroy(&one->work);
	free(one->threads);
	free(one->arenas);
	free(one);
}

struct carrier *block_open(int fd, int event, uint64_t length, uint64_t unit, unsigned threads, const uint64_t *cpus,
			   unsigned depth, int *error)
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
	*error = depth ? open_ring(one, depth) : 0;
	if (!*error)
		*error = depth ? start_threads(one, 1, cpus, run_ring) : start_threads(one, threads, cpus, work);
	if (*error) {
		block_close(one);
		return NULL;
	}
	return one;
}

int block_register(struct carrier *one, uint64_t base, uint64_t size)
{
	struct arena *more;

	pthread_mutex_lock(&one->lock);
	more = realloc(one->arenas, (one->arena_count + 1) * sizeof *more);
	if (!more) {
		pthread_mutex_unlock(&one->lock);
		return ENOMEM;
	}
	one->arenas = more;
	more[one->arena_count] = (struct arena){base, size, 0};
	if (one->has_ring)
		more[one->arena_count].is_fixed = fix(&one->ring, (unsigned)one->arena_count, &more[one->arena_count]);
	one->arena_count++;
	pthread_mutex_unlock(&one->lock);
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
	part->arena = (unsigned)view[0];
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
	if (one->has_ring) {
		if (one->ring.sleeps && one->ring.inflight < one->ring.room)
			kick(&one->ring);
	} else if (parts < one->idle) {
		for (size_t index = 0; index < parts; index++)
			pthread_cond_signal(&one->work);
	} else if (one->idle) {
		pthread_cond_broadcast(&one->work);
	}
	pthread_mutex_unlock(&one->lock);
	return 0;
}

size_t block_ended(struct carrier *one, int64_t *pairs, size_t most)
{
	uint64_t word;
	size_t count = 0;

	pthread_mutex_lock(&one->lock); /* a thread that tells holds it, so none tells between the read and the look */
	while (read(one->event, &word, sizeof word) < 0 && errno == EINTR)
		;
	one->told = 0;
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
