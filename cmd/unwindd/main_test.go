package main

import (
	"os"
	"strings"
	"testing"
)

// TestMain lets the test binary be unwindd: the engine starts its own
// executable as the plugins' parent, and here that is the test binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}
