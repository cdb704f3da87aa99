// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine/service/job"
)

// This file words the errors of command lines: which argument is wrong, what it may be, and its
// likely meaning.

// usageArgs makes the errors of a check of arguments usageErrors.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		switch {
		case err == nil:
			return nil
		case isCount(err):
			err = wrongCount(cmd, args)
		}
		return usageError{err}
	}
}

// isCount reports whether an error is cobra's of a wrong number of arguments. It has no type for it.
func isCount(err error) bool {
	return strings.Contains(err.Error(), "arg(s)") || strings.HasPrefix(err.Error(), "unknown command")
}

// wrongCount is the error of a wrong number of arguments: which there may be, and an example.
func wrongCount(cmd *cobra.Command, args []string) error {
	_, expected, _ := strings.Cut(cmd.UseLine(), cmd.Name()+" ")
	expected = strings.TrimSuffix(expected, " [flags]")
	text := fmt.Sprintf("%s: expected %s", nameOf(cmd), expected)
	if expected == "" || expected == "[flags]" {
		text = nameOf(cmd) + ": expected no arguments"
	}
	if len(args) > 0 {
		text += fmt.Sprintf(", found %s", strings.Join(args[:min(len(args), 4)], " "))
	}
	if example := firstExample(cmd); example != "" {
		text += ", as in: " + example
	}
	return errors.New(text)
}

// nameOf is the name of a command without the program's, which all messages begin with.
func nameOf(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "unwindd ") }

// firstExample is the first line of a command's examples.
func firstExample(cmd *cobra.Command) string {
	line, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	return strings.TrimSpace(line)
}

// flagError returns a function that words the error of flags that cannot be parsed. An unknown name
// may be mistyped, belong to a command that does not exist, or be another tool's. args are the words
// of the command line.
func flagError(args []string) func(cmd *cobra.Command, err error) error {
	return func(cmd *cobra.Command, err error) error {
		if rest := cmd.Flags().Args(); len(rest) > 0 && cmd.HasSubCommands() {
			return usageError{noSuchCommand(cmd, rest)} // the flags are of that command
		}
		var value *pflag.InvalidValueError
		var missing *pflag.ValueRequiredError
		var unknown *pflag.NotExistError
		switch {
		case errors.As(err, &value):
			return usageError{wrongValue(value)}
		case errors.As(err, &missing):
			return usageError{missingValue(missing.GetFlag())}
		case errors.As(err, &unknown):
			return usageError{unknownFlag(cmd, unknown, args)}
		}
		return usageError{err}
	}
}

// valueTexts describe the values of types of flags whose own errors are a parser's.
var valueTexts = map[string]string{
	"bool": "no value, or true or false", "int": "a number", "uint32": "a number of 0 or more", "int64": "a number", "uint64": "a number of 0 or more",
	"float64": "a number", "duration": "a time, as 500ms, 10s or 2m",
}

// wrongValue is the error of a value that a flag does not take.
func wrongValue(err *pflag.InvalidValueError) error {
	cause, f := err.Unwrap(), err.GetFlag()
	expected, isParsed := valueTexts[f.Value.Type()]
	switch {
	case errors.Is(cause, job.ErrUsage):
		return cause // it names the flag itself
	case !isParsed:
		return fmt.Errorf("--%s %s: %w", f.Name, err.GetValue(), cause)
	case f.Value.Type() == "bool":
		return fmt.Errorf("--%s=%s: expected %s", f.Name, err.GetValue(), expected)
	case isThere(err.GetValue()):
		return fmt.Errorf("--%s %s: expected %s, as in --%s 5 %s", f.Name, err.GetValue(), expected, f.Name, err.GetValue())
	}
	return fmt.Errorf("--%s %s: expected %s", f.Name, err.GetValue(), expected)
}

// missingValue is the error of a flag at the end of the command line that has no value.
func missingValue(f *pflag.Flag) error {
	name, usage := pflag.UnquoteUsage(f)
	return fmt.Errorf("--%s: expected a value, --%s %s: %s", f.Name, f.Name, name, usage)
}

// otherFlag is a flag that other tools have and that means something else here.
type otherFlag struct {
	names    []string
	commands []string // the commands that it may be meant for; nil: all
	isPrefix bool     // a name that begins one of names means it, too
	text     string   // what to write instead; COMMAND and VALUE stand for the words of the command line
}

// otherFlags are flags of debuggers and profilers, and habits: gdb, eu-stack, pstack, lldb, perf, py-spy.
var otherFlags = []otherFlag{
	{[]string{"p", "pid"}, []string{"stack", "snapshot"}, false, "give the PID as it is: unwindd COMMAND VALUE"},
	{[]string{"c", "core", "corefile"}, []string{"stack", "snapshot"}, true, "give the core as it is: unwindd COMMAND VALUE"},
	{[]string{"i", "input"}, []string{"profile"}, true, "give the recording as it is: unwindd profile VALUE"},
	{[]string{"executable", "binary", "program", "e", "b"}, []string{"stack", "snapshot", "profile"}, false, "the executable is --exe VALUE"},
	{[]string{"tid", "t"}, []string{"stack", "eval"}, false, "one thread is --thread VALUE"},
	{[]string{"json", "html", "yaml", "xml", "pprof", "folded"}, nil, false, "the format is --format NAME"},
	{[]string{"ex", "batch", "bt", "backtrace"}, []string{"stack"}, false, "stacks are printed at once: unwindd stack CORE"},
	{[]string{"a", "all", "all-threads"}, []string{"stack"}, false, "all threads are printed where --thread ID asks for none of them"},
	{[]string{"V", "version"}, nil, false, "the version is printed by unwindd --version"},
}

// unknownFlag is the error of a flag that a command does not have.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError, args []string) error {
	name := err.GetSpecifiedName()
	written := "--" + name
	if letters := err.GetSpecifiedShortnames(); letters != "" {
		written = "-" + letters
		if len(letters) > 1 {
			name, _, _ = strings.Cut(letters, "=") // -thread for --thread
		}
	}
	unknown := fmt.Errorf("%s has no flag %s", nameOf(cmd), written)
	if text := meantByOthers(cmd, name, args); text != "" {
		return fmt.Errorf("%w; %s", unknown, text)
	}
	if meant := nearestFlag(cmd.Flags(), name); meant != "" {
		return fmt.Errorf("%w; did you mean: --%s", unknown, meant)
	}
	return unknown
}

// meantByOthers returns what a flag of another tool is here; "" where that is not known.
func meantByOthers(cmd *cobra.Command, name string, args []string) string {
	for _, o := range otherFlags {
		if o.commands != nil && !slices.Contains(o.commands, cmd.Name()) {
			continue
		}
		for _, own := range o.names {
			word, rest := name, ""
			if len(own) == 1 && strings.HasPrefix(name, own) && len(name) > 1 && strings.Trim(name[1:], "0123456789") == "" {
				word, rest = own, name[1:] // -p4711
			}
			if word != own && !(o.isPrefix && len(name) > 2 && strings.HasPrefix(own, name)) {
				continue
			}
			value := rest
			if value == "" {
				value = valueAfter(args, name)
			}
			if value == "" {
				value = map[bool]string{true: "PID", false: "FILE"}[own == "p" || own == "pid"]
			}
			return strings.NewReplacer("COMMAND", cmd.Name(), "VALUE", value, "NAME", name).Replace(o.text)
		}
	}
	return ""
}

// valueAfter returns the value that was written for a flag; "" where there is none.
func valueAfter(args []string, name string) string {
	for i, a := range args {
		flag, value, hasValue := strings.Cut(a, "=")
		switch {
		case !strings.HasPrefix(flag, "-") || strings.TrimLeft(flag, "-") != name:
		case hasValue:
			return value
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "-"):
			return args[i+1]
		}
	}
	return ""
}
