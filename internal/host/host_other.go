// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package host

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"time"
)

// Root is no directory: a file of this machine at a path of a target's is another one, unless
// its build ID is the same.
const Root = ""

// Nameless is an error: this system has no files without names.
func Nameless(string, string, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }

// Link is an error: there are no files without names.
func Link(*os.File, string) error { return errors.ErrUnsupported }

// Memory makes a file that is in memory alone, where the system has such files.
func Memory(string, []byte) (*os.File, error) { return nil, errors.ErrUnsupported }

// Uptime is not known.
func Uptime() time.Duration { return 0 }

// OnlyOwner does nothing: servers do not run here.
func OnlyOwner() (end func()) { return func() {} }

// Machine returns Linux's name of this machine, as uname -m prints it there.
func Machine() string {
	if name, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]; ok {
		return name
	}
	return runtime.GOARCH
}

// Release is "": this is no kernel of Linux.
func Release() string { return "" }
