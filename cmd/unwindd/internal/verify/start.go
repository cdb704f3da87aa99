// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// startFixes has the fixes for a process that does not start, by words of the reason. The first
// match counts.
var startFixes = []struct{ words, fix string }{
	{"listens", "Listen at a Unix socket in the directory that PLUGIN_UNIX_SOCKET_DIR names, and say so in the handshake line."},
	{"a line that ends with", "Write grpc as the fifth field of the handshake line, and serve gRPC: sdk.Serve does both."},
	{"not executable", "Give it the right to be executed: chmod +x."},
	{"no such file", "Name the plugin's executable."},
	{"not a regular file", "Name the plugin's executable."},
	{"exec format error", "Build it for this machine, or begin a script with #! and the path of its interpreter."},
	{"to standard output, expected", "Write nothing to standard output before the handshake line, and that as the first thing: logs belong to standard error. sdk.Serve writes it; docs/plugins.md says what it is in other languages."},
	{"before it wrote", "Write the handshake line and listen until the connection ends: in Go, main calls sdk.Serve."},
	{"version", "Build it with the package sdk, or the arch.proto, of this unwindd: the numbers of the handshake line are those of the protocol's version."},
	{"did not start within", "Shake hands first, and read what takes long when it is asked for: a start has 3 seconds of processor time, and 30 by the clock."},
	{"before it was ready", "Mend what ended it. It runs confined: files, the network and other processes are not there, and of the environment only what the handshake needs."},
	{"it is not started: ", "Let nobody but the owner write to it, and to the folders above it: the command is behind the reason."},
	{"peer of", "Let the process that was started listen itself, not one that it starts."},
}

// start starts the process for the first time, and reports whether that succeeded.
func (v *verifier) start() bool {
	if plugin.NameOf(v.Path) == "" {
		v.find(archtest.Warning, "Call the executable unwindd-arch-NAME, or unwindd-runtime-NAME if it teaches a language runtime; NAME has letters, digits, '.', '_', '+' and '-'.",
			fmt.Sprintf("%s would not be found in a plugin directory", v.Path))
	}
	_, err := v.examinee.running(v.ctx)
	if err == nil || v.ctx.Err() != nil {
		return err == nil
	}
	var process *archtest.ProcessError
	reason := err.Error()
	if errors.As(err, &process) {
		reason = process.How
	}
	fix := "See to it that it starts and shakes hands: docs/plugins.md says how a plugin runs."
	for _, f := range startFixes {
		if strings.Contains(reason, f.words) {
			fix = f.fix
			break
		}
	}
	v.find(archtest.Error, fix, "it "+strings.TrimPrefix(reason, "it "))
	return false
}
