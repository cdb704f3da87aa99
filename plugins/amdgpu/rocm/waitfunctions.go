// SPDX-License-Identifier: Apache-2.0

package rocm

// waitFunctions returns the functions in which a thread of the process waits for a
// signal: the runtime's interface, and its callees.
func waitFunctions() []string {
	const (
		signature = "22hsa_signal_condition_tlm16hsa_wait_state_t"
		many      = "EjP12hsa_signal_sP22hsa_signal_condition_tPlm16hsa_wait_state_tS5_"
	)
	return []string{
		"hsa_signal_wait_scacquire", "hsa_signal_wait_relaxed", "hsa_signal_wait_acquire",
		"hsa_amd_signal_wait_any", "hsa_amd_signal_wait_all",
		"_ZN4rocr3HSA25hsa_signal_wait_scacquireE12hsa_signal_s" + signature,
		"_ZN4rocr3HSA23hsa_signal_wait_relaxedE12hsa_signal_s" + signature,
		"_ZN4rocr3HSA23hsa_signal_wait_acquireE12hsa_signal_s" + signature,
		"_ZN4rocr3AMD23hsa_amd_signal_wait_any" + many,
		"_ZN4rocr3AMD23hsa_amd_signal_wait_all" + many,
		"_ZN4rocr4core15InterruptSignal11WaitRelaxedE" + signature,
		"_ZN4rocr4core15InterruptSignal11WaitAcquireE" + signature,
		"_ZN4rocr4core14BusyWaitSignal11WaitRelaxedE" + signature,
		"_ZN4rocr4core14BusyWaitSignal11WaitAcquireE" + signature,
	}
}
