// SPDX-License-Identifier: Apache-2.0

// A training loop of MPI ranks, of which one is elsewhere: ranks FOLDER late|behind RANK.
#include <mpi.h>
#include <string.h>

#include "state.h"

#define APART __attribute__((noinline))

static const char *folder;
static int rank;
static double gradients[1024];

// The late rank sleeps here while all others wait for it.
APART void write_checkpoint(void) {
	state_write(folder, "ready", rank);
	while (!state_may_go(folder))
		state_nap();
}

// The rank that is behind waits here for the others, which have gone on.
APART void end_epoch(MPI_Comm epochs) {
	state_write(folder, "ready", rank);
	MPI_Barrier(epochs);
}

APART void exchange_gradients(void) {
	double sum[1024];
	state_write(folder, "ready", rank);
	MPI_Allreduce(gradients, sum, 1024, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	memcpy(gradients, sum, sizeof sum);
}

APART void train(const char *how, int outlier, MPI_Comm epochs) {
	if (rank == outlier && !strcmp(how, "behind"))
		end_epoch(epochs);
	if (rank == outlier && !strcmp(how, "late"))
		write_checkpoint();
	exchange_gradients();
}

int main(int argc, char **argv) {
	if (argc != 4)
		return 2;
	MPI_Init(&argc, &argv);
	MPI_Comm epochs;
	MPI_Comm_dup(MPI_COMM_WORLD, &epochs);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	folder = argv[1];
	train(argv[2], atoi(argv[3]), epochs);
	state_write(folder, "done", rank);
	MPI_Finalize();
	return 0;
}
