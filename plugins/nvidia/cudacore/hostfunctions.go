// SPDX-License-Identifier: Apache-2.0

package cudacore

// The names of functions of the CUDA runtime (libcudart, also where it is linked into the program) and
// of the driver (libcuda). The headers give a function of the default stream a second name where
// programs are compiled for one default stream per thread.
const (
	perThreadStream = "_ptsz" // of functions with a stream
	perThreadCopy   = "_ptds" // of functions without one
	secondVersion   = "_v2"
)

// hostFunctions are functions that have a further name for each suffix, and for each pair of the
// version and a stream.
type hostFunctions struct {
	names    []string
	suffixes []string
}

// launching are the functions that launch kernels.
var launching = []hostFunctions{
	{[]string{
		"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel", "__cudaLaunchKernel", "cudaGraphLaunch",
		"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuGraphLaunch",
	}, []string{perThreadStream}},
	{[]string{
		"cudaLaunch", "cudaLaunchCooperativeKernelMultiDevice",
		"cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync", "cuLaunchCooperativeKernelMultiDevice",
	}, nil},
}

// awaiting are the functions that wait for kernels: for all of a device, a context, a stream, or those
// before a copy.
var awaiting = []hostFunctions{
	{[]string{"cudaStreamSynchronize", "cuStreamSynchronize"}, []string{perThreadStream}},
	{[]string{
		"cudaDeviceSynchronize", "cudaThreadSynchronize", "cudaEventSynchronize", "cudaExecutionCtxSynchronize", "cudaDeviceReset",
		"cudaFree", "cudaFreeHost", "cudaFreeArray", "cudaMemcpyPeer",
		"cuEventSynchronize", "cuMemFreeHost", "cuModuleUnload", "cuLibraryUnload",
	}, nil},
	{[]string{
		"cudaMemcpy", "cudaMemcpy2D", "cudaMemcpy2DArrayToArray", "cudaMemcpy2DFromArray", "cudaMemcpy2DToArray", "cudaMemcpy3D", "cudaMemcpy3DPeer",
		"cudaMemcpyArrayToArray", "cudaMemcpyFromArray", "cudaMemcpyFromSymbol", "cudaMemcpyToArray", "cudaMemcpyToSymbol",
		"cudaMemset", "cudaMemset2D", "cudaMemset3D", "cuMemcpy", "cuMemcpyPeer", "cuMemcpy3DPeer",
	}, []string{perThreadCopy}},
	{[]string{"cuCtxSynchronize", "cuCtxDestroy", "cuMemFree"}, []string{secondVersion}},
	{[]string{
		"cuMemcpyDtoH", "cuMemcpyHtoD", "cuMemcpyDtoD", "cuMemcpyAtoA", "cuMemcpyAtoD", "cuMemcpyAtoH", "cuMemcpyDtoA", "cuMemcpyHtoA",
		"cuMemcpy2D", "cuMemcpy2DUnaligned", "cuMemcpy3D", "cuMemsetD8", "cuMemsetD16", "cuMemsetD32", "cuMemsetD2D8", "cuMemsetD2D16", "cuMemsetD2D32",
	}, []string{secondVersion, secondVersion + perThreadCopy}},
}

// launchFunctions returns the functions in which a thread of the process launches a kernel.
func launchFunctions() []string { return allNames(launching) }

// waitFunctions returns the functions in which a thread of the process waits for kernels.
func waitFunctions() []string { return allNames(awaiting) }

func allNames(groups []hostFunctions) (list []string) {
	for _, g := range groups {
		for _, name := range g.names {
			list = append(list, name)
			for _, suffix := range g.suffixes {
				list = append(list, name+suffix)
			}
		}
	}
	return list
}
