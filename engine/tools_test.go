package engine

import (
	"os"
	"os/exec"
	"testing"
)

// need says that a test needs tools: without one of them the test fails in CI and
// is skipped elsewhere.
func need(tb testing.TB, tools ...string) {
	tb.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				tb.Fatalf("%s is missing", tool)
			}
			tb.Skipf("%s is missing", tool)
		}
	}
}
