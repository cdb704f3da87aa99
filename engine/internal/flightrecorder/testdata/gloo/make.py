# SPDX-License-Identifier: Apache-2.0

"""Makes the dumps rank_0 to rank_3 in the current folder, of PyTorch 2.15 on a machine without accelerators.

Four ranks reduce three times, and two of them broadcast in a group of their own. In the fourth operation ranks 0 and 2
reduce, rank 3 gathers and rank 1 never comes.
"""

import datetime
import os
import threading
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def dump(rank):
    time.sleep(6)
    with open(f"rank_{rank}", "wb") as f:
        f.write(torch._C._distributed_c10d._dump_fr_trace_json())
    os._exit(0)


def work(rank, world):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", TORCH_FR_BUFFER_SIZE="2000")
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=40))
    pair = dist.new_group([0, 2], backend="gloo")
    t = torch.ones(4, 3)
    for _ in range(3):
        dist.all_reduce(t)
    if rank in (0, 2):
        dist.broadcast(t, 0, group=pair)
    threading.Thread(target=dump, args=(rank,)).start()
    if rank == 3:
        dist.all_gather_into_tensor(torch.zeros(16, 3), t)
    elif rank != 1:
        dist.all_reduce(t)
    time.sleep(30)


if __name__ == "__main__":
    mp.spawn(work, args=(4,), nprocs=4)
