// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

// maxMinimal is how many bytes the executable of the minimal plugin may have.
const maxMinimal = 14_000_000

// minimalPlugin builds the plugin that docs/plugins.md begins with, as small as Go's
// linker makes it without tags.
func minimalPlugin(t testing.TB) string {
	t.Helper()
	document, err := os.ReadFile("../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("(?s)```go\n(package main.*?)```").FindSubmatch(document)
	if code == nil {
		t.Fatal("docs/plugins.md has no plugin")
	}
	dir := t.TempDir()
	source, plugin := filepath.Join(dir, "main.go"), filepath.Join(dir, "unwindd-arch-mychip")
	if err := os.WriteFile(source, code[1], 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.With{Env: []string{"CGO_ENABLED=0"}}.Run(t, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", plugin, source)
	return plugin
}

// TestAMinimalPluginIsSmall: what a plugin links is a server of gRPC, and not what the
// engine needs to start it.
func TestAMinimalPluginIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it links an executable")
	}
	info, err := os.Stat(minimalPlugin(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", info.Size())
	if info.Size() >= maxMinimal {
		t.Errorf("a minimal plugin has %d bytes, expected less than %d", info.Size(), maxMinimal)
	}
}

// BenchmarkMinimalPlugin is the start of the minimal plugin until it says where it listens,
// with TLS: the processor time that it has used then, the median of the rounds.
func BenchmarkMinimalPlugin(b *testing.B) {
	plugin := minimalPlugin(b)
	own, its, dir := newTestIdentity(b), newTestIdentity(b), shortDir(b)
	var used []time.Duration
	for b.Loop() {
		cmd := exec.Command(plugin)
		cmd.Env = []string{Cookie + "=" + CookieValue, SocketDirectory + "=" + dir, EngineCertificate + "=" + own.certificate, PluginIdentity + "=" + its.certificate + its.key}
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			b.Fatal(err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		used = append(used, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	slices.Sort(used)
	b.ReportMetric(float64(used[len(used)/2].Microseconds())/1000, "cpu-ms/start")
}
