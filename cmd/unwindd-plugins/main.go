// SPDX-License-Identifier: Apache-2.0

// Command unwindd-plugins starts plugins for unwindd, where it lies beside unwindd. unwindd can
// do the same, but has four times as much to initialise at each start.
//
//	unwindd-plugins plugin serve NAME            serve a bundled architecture
//	unwindd-plugins plugin exec -- PATH ARGS...  confine this process and execute a vendor's plugin
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/unwindd/unwindd/internal/bundled"
	"github.com/unwindd/unwindd/internal/confine"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "unwindd-plugins:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 1 && args[0] == "plugin" {
		switch args[1] {
		case "serve":
			return confine.ServeMain(args[2:], bundled.Architectures, bundled.Runtimes)
		case "exec":
			return confine.ExecMain(args[2:])
		}
	}
	return errors.New("expected plugin serve NAME, or plugin exec -- PATH ARGS...: unwindd starts this itself")
}
