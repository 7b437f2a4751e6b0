/* What the files of the core share. See core.c. */

#ifndef FABRIC_BLOCK_CORE_H
#define FABRIC_BLOCK_CORE_H

#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct io_uring_sqe;
struct io_uring_cqe;

#define EARLY (-1)             /* the device ended early */
#define MOST_BYTES 0x7ffff000u /* Linux moves no more in one call: read(2) */

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
	int hears, sleeps, has_buffers, can_wait;
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

/* core.c; all with the lock held */
struct part *take(struct carrier *one);
void put_first(struct carrier *one, struct part *part);
void end_part(struct carrier *one, struct part *part, int error);
int is_moot(const struct part *part);

/* ring.c; each returns an errno, or whether it could */
int open_ring(struct carrier *one, unsigned depth);
int fix(struct ring *ring, unsigned number, const struct arena *arena);
void *run_ring(void *carrier);
void kick(const struct ring *ring);
void close_ring(struct ring *ring);

#endif
