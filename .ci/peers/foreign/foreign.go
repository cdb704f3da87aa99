// SPDX-License-Identifier: Apache-2.0

// Package foreign has programs and libraries of Debian for AArch64, which are not installed.
package foreign

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Packages are folders that Debian's packages of two architectures are unpacked in. They are
// not installed: a system of one architecture does not take them without being told of the other.
type Packages struct {
	Arm64  string // Rust's library and musl, for AArch64
	native string // the compiler of the same Rust
}

// fetchPackages has apt-get download packages into the folder $1/deb, by lists of its own, and
// unpacks them. Rust's library is of use to the compiler of the same version alone.
const fetchPackages = `set -eu
cd "$1"
mkdir -p lists/partial cache/archives/partial deb
: >status
foreign() {
	apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Architectures::=amd64 -o Dir::State::lists="$1/lists" -o Dir::Cache="$1/cache" \
		-o APT::Sandbox::User= -o Dir::State::status="$1/status" -o Acquire::Languages=none -o Debug::NoLocking=1 "${@:2}"
}
foreign "$1" update
cd deb
foreign "$1" download libstd-rust-dev:arm64 libstd-rust-1.63:arm64 musl-dev:arm64 musl:arm64
foreign "$1" download rustc:amd64 libstd-rust-1.63:amd64
cd ..
for f in deb/*_arm64.deb; do dpkg -x "$f" arm64; done
for f in deb/*_amd64.deb; do dpkg -x "$f" native; done
rm -r lists cache deb status
`

// Fetch gives the packages. They are kept in the user's cache directory; the first call has apt-get
// download them, and is an error where it may not.
func Fetch() (*Packages, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "unwindd-peers", "arm64-bookworm")
	p := &Packages{filepath.Join(dir, "arm64"), filepath.Join(dir, "native")}
	if _, err := os.Stat(dir); err == nil {
		return p, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "fetch-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	if out, err := exec.Command("bash", "-c", fetchPackages, "bash", temp).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("packages of arm64: %w\n%s", err, out)
	}
	return p, os.Rename(temp, dir)
}

// Rustc is the compiler of Rust for AArch64: what its environment needs, and the command without
// flags and files.
func (p *Packages) Rustc() (env, command []string) {
	env = []string{"LD_LIBRARY_PATH=" + filepath.Join(p.native, "usr/lib/x86_64-linux-gnu")}
	return env, []string{filepath.Join(p.native, "usr/bin/rustc"), "--sysroot", filepath.Join(p.Arm64, "usr"), "--target", "aarch64-unknown-linux-gnu", "-C", "linker=aarch64-linux-gnu-gcc"}
}
