/*
 * Carries out posts without the interpreter: by io_uring, or by threads where there is none or where the kernel would
 * only copy memory. Plain C with the C library alone: no header of Python, so that gcc is all that a build needs.
 * core.py is its only caller, and says what each call does.
 *
 * A job is a post; a part is one range of the device with its memory. Parts of a job are carried out in any order.
 * Threads take a part each. A ring has one thread, which keeps as many in flight as it may; the rest wait here. Only
 * when a whole job has ended is the caller woken: what happens for each part costs nobody else anything.
 */

#include "core.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define TMPFS_MAGIC 0x01021994 /* linux/magic.h */
#define RAMFS_MAGIC 0x858458f6

static void append(struct carrier *one, struct part *part)
{
	part->next = NULL;
	if (one->last)
		one->last->next = part;
	else
		one->first = part;
	one->last = part;
}

void put_first(struct carrier *one, struct part *part)
{
	part->next = one->first;
	one->first = part;
	if (!one->last)
		one->last = part;
}

struct part *take(struct carrier *one)
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

void end_part(struct carrier *one, struct part *part, int error)
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

int is_moot(const struct part *part)
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

/* ---- what core.py calls ---- */

EXPORT int block_in_memory(int fd)
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

EXPORT void block_cancel(struct carrier *one, uint64_t token, int all)
{
	pthread_mutex_lock(&one->lock);
	for (struct job *job = one->jobs.next; job != &one->jobs; job = job->next)
		if (all || job->token == token)
			job->cancelled = 1;
	pthread_mutex_unlock(&one->lock);
}

EXPORT void block_close(struct carrier *one)
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

EXPORT struct carrier *block_open(int fd, int event, uint64_t length, uint64_t unit, unsigned threads, const uint64_t *cpus,
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

EXPORT int block_register(struct carrier *one, uint64_t base, uint64_t size)
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

EXPORT int block_put(struct carrier *one, const uint64_t *words, size_t count)
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

EXPORT size_t block_ended(struct carrier *one, int64_t *pairs, size_t most)
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
