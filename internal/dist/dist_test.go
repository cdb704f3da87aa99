// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

var testRevision = revision{
	version: "v1.2.3-rc.1", commit: strings.Repeat("0123456789", 4),
	time: time.Date(2026, 11, 23, 21, 47, 0, 0, time.UTC), author: "A Name <name@example.org>",
}

func TestVersionsOfCommits(t *testing.T) {
	for _, c := range []struct{ tag, before, want, debian string }{
		{"", "", "v0.0.0-20261123214700-012345678901", "0.0.0~20261123214700.012345678901-1"},
		{"v1.2.3", "v1.2.3", "v1.2.3", "1.2.3-1"},
		{"v1.3.0-rc.1", "v1.3.0-rc.1", "v1.3.0-rc.1", "1.3.0~rc.1-1"},
		{"", "v1.2.3", "v1.2.4-0.20261123214700-012345678901", "1.2.4~0.20261123214700.012345678901-1"},
		{"", "v1.3.0-rc.1", "v1.3.0-rc.1.0.20261123214700-012345678901", "1.3.0~rc.1.0.20261123214700.012345678901-1"},
	} {
		r := testRevision
		r.version = r.named(c.tag, c.before)
		d := debian{r, "amd64"}
		if r.version != c.want || d.number() != c.debian {
			t.Errorf("tag %q, before it %q: %s and %s, want %s and %s", c.tag, c.before, r.version, d.number(), c.want, c.debian)
		}
	}
	if got := firstVersion("vnext\nv1\nv1.2.3+x\nv1.2.3\nv1.0.0\n"); got != "v1.2.3" {
		t.Errorf("the first version is %q", got)
	}
}

// TestVersionsAreThoseOfGo holds the versions of commits against those that the go
// command stamps.
func TestVersionsAreThoseOfGo(t *testing.T) {
	oracle.Tools(t, "git", "go")
	dir := t.TempDir()
	t.Chdir(dir)
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "A Name"}, {"config", "user.email", "name@example.org"}} {
		oracle.Run(t, "git", args...)
	}
	for name, text := range map[string]string{"go.mod": "module " + module + "\n", ".gitignore": "exe\n",
		"main.go": "package main\n\nimport (\n\t\"fmt\"\n\t\"runtime/debug\"\n)\n\nfunc main() { i, _ := debug.ReadBuildInfo(); fmt.Print(i.Main.Version) }\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commit := func() {
		oracle.Run(t, "git", "add", ".")
		oracle.Run(t, "git", "commit", "-q", "--allow-empty", "-m", "change")
	}
	for _, step := range []func(){
		commit, func() { oracle.Run(t, "git", "tag", "v0.9.0") }, commit,
		func() { oracle.Run(t, "git", "tag", "vnext") },
		func() { commit(); oracle.Run(t, "git", "tag", "v0.10.0-rc.1") }, commit,
		func() { oracle.Run(t, "git", "tag", "v0.10.0") },
		func() { _ = os.WriteFile("new", nil, 0o600) }, commit,
	} {
		step()
		r, err := readRevision()
		if err != nil {
			t.Fatal(err)
		}
		oracle.With{Env: []string{"GOFLAGS="}}.Run(t, "go", "build", "-buildvcs=true", "-o", "exe", ".")
		if got := oracle.Run(t, "./exe"); got != r.version {
			t.Errorf("%s here, %s of the go command", r.version, got)
		}
	}
	t.Chdir(t.TempDir())
	if _, err := readRevision(); err == nil || !strings.Contains(err.Error(), "expected a checkout") {
		t.Errorf("outside a checkout: %v", err)
	}
}

// TestLicencesOfWhatIsLinked reads the licences of every module that is linked.
func TestLicencesOfWhatIsLinked(t *testing.T) {
	oracle.Tools(t, "go")
	t.Chdir("../..")
	exe := filepath.Join(t.TempDir(), "unwindd")
	oracle.With{Env: []string{"CGO_ENABLED=0"}}.Run(t, "go", "build", "-trimpath", "-tags=fleet", "-o", exe, "./cmd/unwindd")
	linked, err := linkedModules(exe, "linux", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range linked {
		got[m.path] = strings.Join(m.identifiers, " ")
	}
	for path, want := range map[string]string{
		"std": "BSD-3-Clause", "github.com/hashicorp/go-plugin": "MPL-2.0", "github.com/spf13/cobra": "Apache-2.0",
		"github.com/klauspost/compress": "Apache-2.0 BSD-3-Clause MIT", "github.com/fatih/color": "MIT",
	} {
		if got[path] != want {
			t.Errorf("%s is under %q, expected %q", path, got[path], want)
		}
	}
	texts := string(licenceTexts(linked))
	for _, want := range []string{"\nstd go", "Mozilla Public License, version 2.0", "https://proxy.golang.org/github.com/hashicorp/go-plugin/@v/v", "\nNOTICE\n"} {
		if !strings.Contains(texts, want) {
			t.Errorf("the licences lack %q", want)
		}
	}
	b, err := billOfMaterials(testRevision, "linux/amd64", []byte("an executable"), linked)
	var bill struct {
		Metadata   struct{ Component component }
		Components []component
	}
	if err != nil || json.Unmarshal(b, &bill) != nil || len(bill.Components) != len(linked) {
		t.Errorf("%v: %d components, %d modules are linked", err, len(bill.Components), len(linked))
	}
	if h := bill.Metadata.Component.Hashes; len(h) != 1 || h[0].Content != fmt.Sprintf("%x", sha256.Sum256([]byte("an executable"))) {
		t.Errorf("the executable has the digests %v", h)
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range bill.Components {
		if c.Name != "std" && (len(c.Properties) != 1 || !strings.Contains("\n"+string(sums), "\n"+c.Name+" "+c.Version+" "+c.Properties[0].Value+"\n")) {
			t.Errorf("go.sum has no %s %s with %v", c.Name, c.Version, c.Properties)
		}
	}
}

func TestLicencesThatAreNotKnown(t *testing.T) {
	for name, m := range map[string]*linkedModule{
		"no licence": {texts: map[string]string{}},
		"a notice":   {texts: map[string]string{"NOTICE": "Copyright"}},
		"another":    {texts: map[string]string{"LICENSE": "GNU GENERAL PUBLIC LICENSE"}},
		"one of two": {texts: map[string]string{"LICENSE": "Mozilla Public License, version 2.0\nCovered Software", "sub/COPYING": "All rights reserved."}},
	} {
		if err := m.check(); err == nil {
			t.Errorf("%s: is taken for %v", name, m.identifiers)
		}
	}
}

func TestArchivesHaveNothingOfThisMachine(t *testing.T) {
	b, err := tarGz([]file{{"b/z/x", 0o755, []byte("x")}, {"b/a", 0o644, nil}, {"./usr/x", 0o644, nil}}, testRevision.time)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil || z.Name != "" || !z.ModTime.IsZero() {
		t.Fatalf("%v: name %q, time %v", err, z.Name, z.ModTime)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || !h.ModTime.Equal(testRevision.time) {
			t.Errorf("%+v", h)
		}
	}
	if got := strings.Join(names, " "); got != "./ ./usr/ ./usr/x b/ b/a b/z/ b/z/x" {
		t.Errorf("%s", got)
	}
}

func TestZipsHaveNothingOfThisMachine(t *testing.T) {
	files := []file{{"b/bin/x.exe", 0o755, []byte("MZ")}, {"b/a", 0o644, []byte("text")}}
	b, err := zipped(files, testRevision.time)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
		if !f.Modified.Equal(testRevision.time) || f.Mode().Perm() != 0o755 && f.Name == "b/bin/x.exe" {
			t.Errorf("%+v", f.FileHeader)
		}
	}
	if got := strings.Join(names, " "); got != "b/a b/bin/x.exe" {
		t.Errorf("%s", got)
	}
}

// TestPackagesAreReadByDpkg lists and unpacks a package by Debian's own tool.
func TestPackagesAreReadByDpkg(t *testing.T) {
	oracle.Tools(t, "dpkg-deb")
	d := debian{testRevision, "amd64"}
	linked := []*linkedModule{{path: "example.org/m", version: "v1.0.0", identifiers: []string{"MIT"}}}
	b, err := d.pack([]file{{"bin/unwindd", 0o755, []byte("exe")}, {"share/man/man1/unwindd.1", 0o644, []byte(".TH")}, {docDir + "/LICENSE", 0o644, nil}, {"share/zsh/site-functions/_unwindd", 0o644, []byte("odd")}, {"etc/unwindd/serve.toml", 0o644, []byte("[serve]")}, {"lib/systemd/system/unwindd.service", 0o644, []byte("[Unit]")}}, linked)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, d.name())
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := oracle.Run(t, "dpkg-deb", "-f", path, "Version", "Maintainer"); got != "Version: 1.2.3~rc.1-1\nMaintainer: A Name <name@example.org>\n" {
		t.Errorf("%s", got)
	}
	oracle.Run(t, "dpkg-deb", "-x", path, dir)
	if got := oracle.Run(t, "dpkg-deb", "-I", path, "conffiles"); got != "/etc/unwindd/serve.toml\n" {
		t.Errorf("conffiles: %q", got)
	}
	if got := oracle.Run(t, "dpkg-deb", "-I", path, "prerm"); !strings.HasPrefix(got, "#!/bin/sh\n") {
		t.Errorf("prerm: %q", got)
	}
	for _, want := range []string{"usr/bin/unwindd", "usr/share/man/man1/unwindd.1.gz", "usr/share/zsh/vendor-completions/_unwindd", "usr/share/doc/unwindd/copyright", "etc/unwindd/serve.toml", "usr/lib/systemd/system/unwindd.service"} {
		if _, err := os.Stat(filepath.Join(dir, want)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "usr", docDir, "LICENSE")); err == nil {
		t.Error("the package has the text of a licence that Debian has")
	}
}

func TestReleasesAreNotMixed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old.tar.gz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, map[string][]byte{"new.tar.gz": {}}); err == nil || !strings.Contains(err.Error(), "old.tar.gz") {
		t.Errorf("%v", err)
	}
}
