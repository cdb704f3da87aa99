// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"slices"
	"testing"
)

func TestTheStartOfAProcessIsInItsDump(t *testing.T) {
	s := (&Target{Dump: &Dump{Linux: Linux{CommandLine: []string{"./server", "--port", "80"}, Environ: []string{"A=1", "RANK=2"}}}}).Start()
	if !slices.Equal(s.Command, []string{"./server", "--port", "80"}) || !slices.Equal(s.Environment, []string{"A=1", "RANK=2"}) || s.Cgroup != "" {
		t.Errorf("%q", s)
	}
}
