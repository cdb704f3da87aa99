// SPDX-License-Identifier: Apache-2.0

package goget

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/unwindd/unwindd/internal/oracle"
)

const (
	path    = "github.com/unwindd/unwindd"
	version = "v0.9.0"
)

// plugin is the first one of docs/writing-a-plugin.md.
const plugin = `package main

import (
	"context"

	"github.com/unwindd/unwindd/sdk"
)

type architecture struct{ sdk.Base }

func (architecture) Describe(context.Context) (*sdk.Description, error) {
	return &sdk.Description{Name: "mychip"}, nil
}

func main() { sdk.Serve(architecture{}) }
`

// publish puts HEAD into a folder as proxies have modules, of a version that is not there yet.
func publish(t *testing.T, top, proxy string) {
	t.Helper()
	dir := filepath.Join(proxy, path, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := zip.CreateFromDir(file, module.Version{Path: path, Version: version}, unpacked(t, top)); err != nil {
		t.Fatal(err)
	}
	mod, err := exec.Command("git", "-C", top, "show", "HEAD:go.mod").Output()
	if err != nil {
		t.Fatal(err)
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Date(2026, 1, 31, 17, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"list": []byte(version + "\n"), version + ".mod": mod, version + ".info": info} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// unpacked is a folder with the files of HEAD, as a proxy sees them.
func unpacked(t *testing.T, top string) string {
	t.Helper()
	dir := t.TempDir()
	tar := filepath.Join(t.TempDir(), "head.tar")
	oracle.Run(t, "git", "-C", top, "archive", "-o", tar, "HEAD")
	oracle.Run(t, "tar", "-x", "-f", tar, "-C", dir)
	return dir
}

// goCommand is the go command of somebody who has a proxy alone: its module and, as files, what this
// machine downloaded for the project.
type goCommand struct {
	dir string
	env []string
}

func newGoCommand(t *testing.T, proxy string) *goCommand {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	// As `make dist` compiles, so that what it compiled is used.
	return &goCommand{dir: t.TempDir(), env: append(os.Environ(),
		"GOPROXY=file://"+proxy+",file://"+strings.TrimSpace(string(cache))+"/cache/download",
		"GOMODCACHE="+own, "GOFLAGS=-modcacherw -trimpath", "GOSUMDB=off", "GONOPROXY=none", "GOPRIVATE=", "GOVCS=*:off", "GOWORK=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0")}
}

func (g *goCommand) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = g.dir, g.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// checkout is the top of the clone.
func checkout(t *testing.T) string {
	t.Helper()
	top, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("git", "-C", top, "rev-parse", "-q", "--verify", "HEAD").Run(); err != nil {
		oracle.Missing(t, "a checkout by git is needed: %v", err)
	}
	return top
}

// A vendor's module gets the sdk by its version, and builds the smallest plugin from it.
func TestTheSDKByItsVersion(t *testing.T) {
	oracle.All(t)
	proxy := t.TempDir()
	publish(t, checkout(t), proxy)
	g := newGoCommand(t, proxy)
	if err := os.WriteFile(filepath.Join(g.dir, "main.go"), []byte(plugin), 0o644); err != nil {
		t.Fatal(err)
	}
	g.run(t, "mod", "init", "example.com/unwindd-arch-mychip")
	g.run(t, "get", path+"/sdk@"+version)
	g.run(t, "build", "-o", "unwindd-arch-mychip")
	exe := filepath.Join(g.dir, "unwindd-arch-mychip")
	info, err := buildinfo.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, m := range info.Deps {
		if m.Path == path {
			got = m.Version
		}
	}
	if got != version {
		t.Errorf("the plugin was built with %s %q, want %s", path, got, version)
	}
	t.Logf("it has %d modules of others", len(info.Deps)-1)
	out, err := exec.Command(exe).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "unwindd") {
		t.Errorf("started by hand: %v, %s; want that it says what it is for", err, out)
	}
}

// The command, installed by its version, says that it is this one.
func TestTheCommandByItsVersion(t *testing.T) {
	if os.Getenv("UNWINDD_PROOF") == "" {
		t.Skip("it compiles everything: UNWINDD_PROOF=1 has it run")
	}
	proxy := t.TempDir()
	publish(t, checkout(t), proxy)
	g := newGoCommand(t, proxy)
	g.env = append(g.env, "GOBIN="+g.dir)
	g.run(t, "install", path+"/cmd/unwindd@latest")
	out, err := exec.Command(filepath.Join(g.dir, "unwindd"), "version", "--format", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var said struct{ Version string }
	if err := json.Unmarshal(out, &said); err != nil || said.Version != version {
		t.Errorf("unwindd version says %s (%v), want %s", out, err, version)
	}
}
