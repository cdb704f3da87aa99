# SPDX-License-Identifier: Apache-2.0

"""Makes rank0.pt.trace.json in the current folder, of PyTorch 2.15; its host was renamed to n07."""

import os

import torch
import torch.distributed as dist

os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29519")
dist.init_process_group("gloo")
with torch.profiler.profile() as profile:
    t = torch.ones(4)
    dist.all_reduce(t)
profile.export_chrome_trace("rank0.pt.trace.json")
