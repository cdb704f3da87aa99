#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records a program that computes on an AMD GPU, the CPU by perf and the GPU by
# rocprofv3, and prints the profile of both:
#
#	sh record.sh DIRECTORY PROGRAM [ARGUMENT...]
#
# DIRECTORY gets perf.data and gpu_results.json. Probes need root, or the rights
# that `perf probe` asks for. HIP_LIBRARY is the HIP runtime, where that is not the
# one that the dynamic linker finds.
set -eu

directory=$1
shift
library=${HIP_LIBRARY:-$(ldconfig -p | awk '$1 ~ /^libamdhip64\.so/ { print $NF; exit }')}
[ -n "$library" ] || { echo "record.sh: there is no libamdhip64.so: set HIP_LIBRARY" >&2; exit 1; }
mkdir -p "$directory"

# The calls that launch. Not every version of the runtime has all of them.
group=launch$$
for call in hipLaunchKernel hipModuleLaunchKernel hipExtModuleLaunchKernel hipExtLaunchKernel hipLaunchCooperativeKernel hipGraphLaunch; do
	perf probe -q -x "$library" "probe_$group:$call=$call" 2>/dev/null || true
done
trap 'perf probe -q -d "probe_$group:*"' EXIT

# The kernel gives probes no CLOCK_BOOTTIME, by which rocprofv3 counts. The two
# clocks differ by the time that the machine slept, which unwindd finds.
perf record -k CLOCK_MONOTONIC -o "$directory/perf.data" --call-graph dwarf,16384 \
	-e cpu-clock/freq=999,name=cpu-clock/ -e "probe_$group:*" -- \
	rocprofv3 --pc-sampling-beta-enabled --pc-sampling-method host_trap --pc-sampling-unit time --pc-sampling-interval 100 \
	--kernel-trace --hip-trace --output-format json -d "$directory" -o gpu -- "$@"

unwindd profile "$directory/perf.data" --gpu "$directory/gpu_results.json"
