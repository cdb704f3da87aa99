// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// build is a peer that Debian has no package of. It is made once, in a folder of the user's
// cache directory.
type build struct {
	name, version string // of the crate, or of Python's package
	program       string // in the folder
	variable      string // of the environment, which names a program instead; "": none
	tool          string // that makes it
	script        string // of sh, which makes it in the folder
	sources       string // what the script needs beside
}

// The peers that are made. What cargo needs is downloaded, some hundred crates for samply.
var (
	gimliAddr2line = crate("addr2line", "0.27.1", "addr2line", "UNWINDD_PEER_GIMLI", "--features bin")
	inferno        = crate("inferno", "0.12.8", "inferno-collapse-perf", "", "")
	samply         = crate("samply", "0.13.1", "samply", "", "")
	rustMinidump   = crate("minidump-stackwalk", "0.27.0", "minidump-stackwalk", "", "")
	pySpy          = wheel("py-spy", "0.4.3")
	pystack        = wheel("pystack", "1.7.2")
	framehopPerf   = &build{
		name: "framehop-perf", version: "0.16.0", program: "framehop-perf", variable: "UNWINDD_PEER_FRAMEHOP", tool: "cargo", sources: "framehop",
		script: `cargo build --quiet --release --target-dir target && mv target/release/framehop-perf . && rm -r target`,
	}
)

// framehopSources has the program that unwinds a recording by the crate framehop.
//
//go:embed framehop
var framehopSources embed.FS

// crate is an executable of a crate.
func crate(name, version, program, variable, flags string) *build {
	return &build{
		name: name, version: version, program: filepath.Join("bin", program), variable: variable, tool: "cargo",
		script: strings.TrimSpace("cargo install --quiet --root . " + name + "@" + version + " " + flags),
	}
}

// wheel is a command of a package of Python's. Beside its modules it finds them.
func wheel(name, version string) *build {
	return &build{
		name: name, version: version, program: "run-" + name, tool: "python3",
		script: fmt.Sprintf("python3 -m pip install --quiet --no-deps --only-binary :all: --target . %s==%s && mv bin/%s run-%s", name, version, name, name),
	}
}

// built returns the path of a peer, which is made first where the run is not short. Where
// there is none, the path leads nowhere, and the peer is named as absent.
func (b *bench) built(m *build) string {
	if set := os.Getenv(m.variable); m.variable != "" && set != "" {
		b.uses(m.name + " of " + m.variable)
		return set
	}
	name := m.folder()
	if b.short && !cost.IsKept(name) {
		return b.unmade(m, "a short run makes no peers")
	}
	dir, err := cost.Kept(name, func(dir string) error {
		b.referee.progress("making %s %s, which may take minutes", m.name, m.version)
		return m.in(dir)
	})
	if err != nil {
		return b.unmade(m, oneLine(err.Error()))
	}
	b.uses(fmt.Sprintf("%s %s (%s)", m.name, m.version, m.tool))
	return filepath.Join(dir, m.program)
}

// uses has a peer that was made named in the document.
func (b *bench) uses(peer string) {
	if !slices.Contains(b.versions, peer) {
		b.versions = append(b.versions, peer)
	}
}

// unmade says that a peer is absent, and returns a path that leads nowhere.
func (b *bench) unmade(m *build, why string) string {
	b.absent(m.name, why)
	return filepath.Join(b.dir, "absent", m.name)
}

// folder is the name of the folder, another one for each way to make the peer.
func (m *build) folder() string {
	hash := sha256.New()
	fmt.Fprint(hash, m.script)
	_ = m.eachSource(func(path string, text []byte) error {
		fmt.Fprint(hash, path, text)
		return nil
	})
	return fmt.Sprintf("%s-%s-%x", m.name, m.version, hash.Sum(nil)[:4])
}

// in makes the peer in a folder.
func (m *build) in(dir string) error {
	err := m.eachSource(func(path string, text []byte) error {
		to := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o600)
	})
	if err != nil {
		return err
	}
	// rustup puts cargo where no shell looks that was not told.
	home, _ := os.UserHomeDir()
	cargo := filepath.Join(cmp.Or(os.Getenv("CARGO_HOME"), filepath.Join(home, ".cargo")), "bin")
	path := os.Getenv("PATH") + ":" + cargo
	if _, err := exec.LookPath(m.tool); err != nil {
		if _, err := os.Stat(filepath.Join(cargo, m.tool)); err != nil {
			return fmt.Errorf("%s: %w", m.tool, exec.ErrNotFound)
		}
	}
	return cost.Run(dir, "env", "PATH="+path, "sh", "-c", m.script)
}

// eachSource calls f with the sources of the peer, by their paths in its folder.
func (m *build) eachSource(f func(path string, text []byte) error) error {
	if m.sources == "" {
		return nil
	}
	return fs.WalkDir(framehopSources, m.sources, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := framehopSources.ReadFile(path)
		if err != nil {
			return err
		}
		return f(strings.TrimPrefix(path, m.sources+"/"), text)
	})
}
