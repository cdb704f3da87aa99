// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
)

// This file completes the words of command lines, for shells. What it offers may depend on
// targets, which may be large or wrong: nothing is said of errors, and no shell waits long.

const (
	// maxCompletion bounds the time that a completion takes.
	maxCompletion = 500 * time.Millisecond
	// maxOffered bounds the words that are offered.
	maxOffered = 1000
)

// completer completes words; it is the type of cobra's functions.
type completer = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective)

// completeTargets completes a command's arguments, of which there are at most most, with files
// and the IDs of living processes.
func completeTargets(most int) completer {
	return func(_ *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if strings.Trim(word, "0123456789") != "" {
			return nil, cobra.ShellCompDirectiveDefault // the shell completes names of files itself
		}
		list := offer(ownProcesses("/proc"), word)
		if len(list) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		// Shells complete names of files only where they are offered nothing else.
		files, _ := filepath.Glob(word + "*")
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && info.IsDir() {
				file += "/"
			}
			if !strings.HasPrefix(file, ".") {
				list = append(list, printable(file))
			}
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if len(list) == 1 && strings.HasSuffix(list[0], "/") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return list[:min(len(list), maxOffered)], directive
	}
}

// completeRecorded completes the arguments of `unwindd profile`: the words behind -- are a program's.
func completeRecorded(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	// The words to complete end with a -- of cobra's own.
	if dash := cmd.ArgsLenAtDash(); dash >= 0 && dash < len(args) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return completeTargets(maxTraces)(cmd, args, word)
}

// completeProcesses completes the ID of a living process.
func completeProcesses(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return offer(ownProcesses("/proc"), word), cobra.ShellCompDirectiveNoFileComp
}

// completeThreads completes --thread with the threads of the target among the arguments.
func completeThreads(_ *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	found := make(chan []named, 1)
	go func() {
		for _, target := range args {
			if list := threadsOf(target); len(list) > 0 {
				found <- list
				return
			}
		}
		found <- nil
	}()
	var list []cobra.Completion
	select {
	case threads := <-found:
		list = offer(threads, word)
	case <-time.After(maxCompletion):
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// named is the ID of a process or a thread with its name.
type named struct{ id, name string }

// offer returns the completions of the IDs that begin with a word.
func offer(list []named, word string) (offered []cobra.Completion) {
	for _, n := range list {
		if strings.HasPrefix(n.id, word) && len(offered) < maxOffered {
			offered = append(offered, cobra.CompletionWithDesc(printable(n.id), printable(n.name)))
		}
	}
	return offered
}

// printable returns text without anything that a terminal would obey, or that ends a line.
func printable(text string) string {
	var b bytes.Buffer
	report.NewLinePrinter(&b).Printf("%s", text)
	return b.String()
}

// threadsOf returns the threads of a target of the command line. Packed targets, folders and
// pipes are not read.
func threadsOf(target string) []named {
	if pid, ok := processID(target); ok {
		return processes(fmt.Sprintf("/proc/%d/task", pid), func(string) bool { return true })
	}
	if info, err := os.Stat(target); err != nil || !info.Mode().IsRegular() || isExecutable(target) {
		return nil
	}
	g := &globals{inProcess: true}
	plugins, err := g.ownPlugins()
	if err != nil {
		return nil
	}
	e, err := engine.New(engine.Options{Plugins: plugins, MaxUnpacked: 1})
	if err != nil {
		return nil
	}
	defer e.Close()
	var list []named
	_ = engine.Guard(func() error { // the file may be truncated meanwhile
		t, err := e.Open(target)
		if err != nil {
			return err
		}
		defer t.Close()
		for _, th := range t.Threads() {
			if list = append(list, named{th.ID, th.Name}); len(list) == maxOffered {
				break
			}
		}
		return nil
	})
	return list
}
