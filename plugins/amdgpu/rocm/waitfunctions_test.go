// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"strings"
	"testing"

	"github.com/ianlancetaylor/demangle"
)

// TestWaitFunctions reads the names of the runtime's functions.
func TestWaitFunctions(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range waitFunctions() {
		text := name
		if strings.HasPrefix(name, "_Z") {
			var err error
			if text, err = demangle.ToString(name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			text, _, _ = strings.Cut(text, "(")
		}
		seen[text] = true
	}
	for _, want := range []string{
		"hsa_signal_wait_scacquire", "hsa_signal_wait_relaxed", "hsa_signal_wait_acquire", "hsa_amd_signal_wait_any", "hsa_amd_signal_wait_all",
		"rocr::HSA::hsa_signal_wait_scacquire", "rocr::HSA::hsa_signal_wait_relaxed", "rocr::HSA::hsa_signal_wait_acquire",
		"rocr::AMD::hsa_amd_signal_wait_any", "rocr::AMD::hsa_amd_signal_wait_all",
		"rocr::core::InterruptSignal::WaitRelaxed", "rocr::core::InterruptSignal::WaitAcquire",
		"rocr::core::BusyWaitSignal::WaitRelaxed", "rocr::core::BusyWaitSignal::WaitAcquire",
	} {
		if !seen[want] {
			t.Errorf("%s is missing", want)
		}
	}
}
