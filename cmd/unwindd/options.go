// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/unwindd/unwindd/engine/symbolize"
)

// Other tools' command lines are read as they read them: letters may be
// grouped, a letter's value may follow at once, and options may come after
// arguments.

// argument says whether an option has a value.
type argument int

const (
	noArgument argument = iota
	needsArgument
	mayHaveArgument // after "=" only
)

// option is an option of another tool.
type option struct {
	letter   byte // 0: none
	long     string
	argument argument
	set      func(value string, given bool) error
}

// optionSet is the options of a tool.
type optionSet struct {
	options []option
	// abbreviated says that long options may be cut short, and that what
	// follows "--" is no option.
	abbreviated bool
	// letterValue says that a letter with a value may have "=" before it.
	letterValue bool
	unknown     func(text string) error
	missing     func(text string) error
}

// maxResponses bounds how deep response files name others.
const maxResponses = 16

// expand puts the words of response files where @FILE is.
func expand(args []string, depth int) []string {
	var list []string
	for _, a := range args {
		name, ok := strings.CutPrefix(a, "@")
		if !ok || depth == maxResponses {
			list = append(list, a)
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			list = append(list, a)
			continue
		}
		list = append(list, expand(words(string(b)), depth+1)...)
	}
	return list
}

// words splits text at blanks that are neither in quotes nor after a backslash.
func words(text string) []string {
	var list []string
	var word strings.Builder
	in, quote := false, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quote != '\'' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
			in = true
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				word.WriteByte(c)
			}
		case c == '"' || c == '\'':
			quote, in = c, true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if in {
				list = append(list, word.String())
				word.Reset()
				in = false
			}
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if in {
		list = append(list, word.String())
	}
	return list
}

// parse sets what args say and returns those that are no options. The error
// joins all that is wrong.
func (s *optionSet) parse(args []string) (rest []string, err error) {
	var wrong []error
	for i := 0; i < len(args); i++ {
		a := args[i]
		// value takes the next argument.
		value := func(name string) (string, bool) {
			if i+1 == len(args) {
				wrong = append(wrong, s.missing(name))
				return "", false
			}
			i++
			return args[i], true
		}
		switch {
		case a == "--" && s.abbreviated:
			return append(rest, args[i+1:]...), errors.Join(wrong...)
		case strings.HasPrefix(a, "--"):
			wrong = append(wrong, s.long(a, value))
		case len(a) > 1 && a[0] == '-':
			wrong = append(wrong, s.letters(a, value))
		default:
			rest = append(rest, a)
		}
	}
	return rest, errors.Join(wrong...)
}

func (s *optionSet) long(a string, value func(string) (string, bool)) error {
	name, text, given := strings.Cut(a[2:], "=")
	o := s.find(name)
	switch {
	case o == nil, given && o.argument == noArgument:
		return s.unknown(a)
	case !given && o.argument == needsArgument:
		if text, given = value(a); !given {
			return nil // said already
		}
	}
	return o.set(text, given)
}

// find returns the option of a long name; nil where there is none, or several.
func (s *optionSet) find(name string) *option {
	var found *option
	for i := range s.options {
		o := &s.options[i]
		if o.long == name && name != "" {
			return o
		}
		if s.abbreviated && name != "" && strings.HasPrefix(o.long, name) {
			if found != nil {
				return nil
			}
			found = o
		}
	}
	return found
}

func (s *optionSet) letters(a string, value func(string) (string, bool)) error {
	var wrong []error
	for at := 1; at < len(a); at++ {
		o := s.letter(a[at])
		if o == nil {
			wrong = append(wrong, s.unknown("-"+a[at:at+1]))
			continue
		}
		text := a[at+1:]
		equals := s.letterValue && strings.HasPrefix(text, "=") && o.argument != noArgument
		switch {
		case equals:
			text = text[1:]
		case o.argument != needsArgument:
			wrong = append(wrong, o.set("", false))
			continue
		case text == "":
			var ok bool
			if text, ok = value("-" + a[at:at+1]); !ok {
				return errors.Join(wrong...)
			}
		}
		wrong = append(wrong, o.set(text, true))
		break
	}
	return errors.Join(wrong...)
}

func (s *optionSet) letter(c byte) *option {
	for i := range s.options {
		if s.options[i].letter == c {
			return &s.options[i]
		}
	}
	return nil
}

// flagOption is an option without a value.
func flagOption(letter byte, long string, set func()) option {
	return option{letter, long, noArgument, func(string, bool) error { set(); return nil }}
}

// textOption is an option whose value is kept.
func textOption(letter byte, long string, to *string) option {
	return option{letter, long, needsArgument, func(v string, _ bool) error { *to = v; return nil }}
}

// numberOption is an option whose value is a number as C has them.
func numberOption(long string, to *uint64) option {
	return option{0, long, needsArgument, func(v string, _ bool) (err error) {
		if *to, err = symbolize.ParseNumber(v); err != nil {
			return fmt.Errorf("--%s=: expected a non-negative integer, but got '%s'", long, v)
		}
		return nil
	}}
}
