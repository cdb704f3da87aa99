// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestRecordsAreThoseOfDumpSyms: what differs is of kinds whose reason is known.
func TestRecordsAreThoseOfDumpSyms(t *testing.T) {
	oracle.Tools(t, "npm", "tar", "g++", "clang++-22", "readelf", "eu-unstrip", "objcopy")
	t.Chdir("..") // where the command is run
	if err := run(nil, 3); err != nil {
		t.Error(err)
	}
}
