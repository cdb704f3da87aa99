// SPDX-License-Identifier: Apache-2.0

// Command unchanged runs tests and other commands of CI whose inputs differ from those that they
// passed with before. What passed is kept in the user's cache directory for two weeks, with the
// hash of everything that decided it.
//
//	unchanged test FLAGS... PACKAGES...   as go test
//	unchanged run [-all] COMMAND...       any command
//
// A package's inputs are the compiled code of its test with all it imports, the flags, the tools
// of this machine, variables of the environment, and the files of the checkout that the test
// opened, by the log that package testing writes for the go command. Where a test starts
// programs, or can call the system past that log, they are all files but Go's sources and
// documents, and all but documents where it starts the go command or a shell. A command's are all
// files but tests and documents; with -all those too. UNWINDD_ANEW=1 runs everything.
//
// The go command's own cache of tests knows nothing of tools and of what they read, compares
// times of files, which a new clone changes, and keeps nothing that runs by -exec.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// anewVariable is set where everything runs.
const anewVariable = "UNWINDD_ANEW"

func main() {
	err := run(os.Args[1:])
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() > 0 {
		os.Exit(failed.ExitCode()) // it has said why
	}
	cost.Exit("unchanged", err)
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: unchanged test FLAGS... PACKAGES... | unchanged run [-all] COMMAND...")
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	files, err := readCheckout(dir)
	if err != nil {
		return err
	}
	kept, err := openStore(os.Getenv(anewVariable) != "")
	if err != nil {
		return err
	}
	switch args[0] {
	case "test":
		return test(files, kept, args[1:])
	case "run":
		return command(files, kept, args[1:])
	}
	return fmt.Errorf("no such mode: %q", args[0])
}
