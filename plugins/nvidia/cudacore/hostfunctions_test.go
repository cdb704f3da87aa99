// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"slices"
	"testing"
)

// TestHostFunctions has names as libcudart.so.13 exports them and cuda.h declares them.
func TestHostFunctions(t *testing.T) {
	for _, c := range []struct {
		what string
		list []string
		has  []string
	}{
		{"launch", launchFunctions(), []string{
			"cudaLaunchKernel", "cudaLaunchKernel_ptsz", "__cudaLaunchKernel_ptsz", "cudaLaunchKernelExC_ptsz", "cudaGraphLaunch_ptsz",
			"cuLaunchKernel", "cuLaunchKernelEx", "cuGraphLaunch", "cuLaunchCooperativeKernel",
		}},
		{"wait", waitFunctions(), []string{
			"cudaDeviceSynchronize", "cudaStreamSynchronize_ptsz", "cudaMemcpy_ptds", "cudaMemcpyFromSymbol", "cudaEventSynchronize",
			"cuCtxSynchronize", "cuCtxSynchronize_v2", "cuStreamSynchronize", "cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2_ptds", "cuMemFree_v2",
		}},
	} {
		for _, name := range c.has {
			if !slices.Contains(c.list, name) {
				t.Errorf("%s is not among the functions that %s", name, c.what)
			}
		}
		sorted := slices.Sorted(slices.Values(c.list))
		if n := len(slices.Compact(sorted)); n != len(c.list) {
			t.Errorf("of %d functions that %s, %d are different", len(c.list), c.what, n)
		}
	}
}
