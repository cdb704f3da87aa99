// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// Debug is the environment variable that lets Serve serve without an engine that
// started the process, as in a debugger: where it is set, the process writes a
// setting of Reattach to standard output, for the shell, and answers all engines that
// connect, one after the other, until it is interrupted.
const Debug = "UNWINDD_PLUGIN_DEBUG"

// Reattach is the environment variable with the processes that the engine uses instead
// of starting them: a JSON object of Reattachments by the names of plugins.
const Reattach = "UNWINDD_REATTACH_PLUGINS"

// Reattachment describes a process of a plugin that the engine did not start. Its members
// have go-plugin's names.
type Reattachment struct {
	Protocol        string // "grpc"
	ProtocolVersion int    // ProtocolVersion
	Pid             int    // of the process
	Addr            Addr
	Kind            string `json:",omitempty"` // "runtime" of a language runtime; "" of an architecture
}

// Addr is the address that a process listens on.
type Addr struct {
	Network string // "unix"
	String  string // the path of the socket
}

// serveDebug answers engines until the process is interrupted.
func serveDebug(plugin service) error {
	dir, err := os.MkdirTemp("", "unwindd-debug")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := listen(dir)
	if err != nil {
		return err
	}
	s := newServer(plugin)
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(interrupted, s.Stop)
	line, err := json.Marshal(map[string]Reattachment{
		nameOf(plugin): {"grpc", ProtocolVersion, os.Getpid(), Addr{"unix", l.Addr().String()}, plugin.kind},
	})
	if err != nil {
		return err
	}
	fmt.Printf("%s='%s'\n", Reattach, strings.ReplaceAll(string(line), "'", `\u0027`))
	if err := s.Serve(l); interrupted.Err() == nil { // else Serve may have failed to begin
		return err
	}
	return nil
}

// nameOf returns the name of this process's plugin: NAME of an executable with the prefix
// of its kind, else, as for executables that debuggers build, the description's.
func nameOf(plugin service) string {
	base := filepath.Base(os.Args[0])
	if name, ok := strings.CutPrefix(base, plugin.prefix); ok {
		return name
	}
	if name, err := plugin.describe(context.Background()); err == nil && name != "" {
		return name
	}
	return base
}

// ExecutablePrefix and RuntimePrefix are the beginnings of the names of plugins'
// executables: of architectures, and of language runtimes.
const (
	ExecutablePrefix = "unwindd-arch-"
	RuntimePrefix    = "unwindd-runtime-"
)
