// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/unwindd/unwindd/engine/symbolize"
)

// This file reads command lines of other tools as these do: letters may be grouped, a
// letter's value may follow at once, and options may come after arguments.

// argument tells whether an option has a value.
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
	set      func(value string, isSet bool) error
}

// optionSet is the options of a tool.
type optionSet struct {
	options []option
	// abbreviated: long options may be cut short, and after "--" there are no options.
	abbreviated bool
	// letterValue: a letter's value may follow "=".
	letterValue bool
	unknown     func(text string) error
	missing     func(text string) error
}

// maxResponses bounds the nesting of response files.
const maxResponses = 16

// expand replaces @FILE by the words of the response file.
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

// words splits text at blanks that are not quoted.
func words(text string) []string {
	var list []string
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quote != '\'' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
			inWord = true
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				word.WriteByte(c)
			}
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if inWord {
				list = append(list, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		list = append(list, word.String())
	}
	return list
}

// parse sets the options of args and returns the other arguments. The error joins all
// errors.
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
	name, text, isSet := strings.Cut(a[2:], "=")
	o := s.find(name)
	switch {
	case o == nil, isSet && o.argument == noArgument:
		return s.unknown(a)
	case !isSet && o.argument == needsArgument:
		if text, isSet = value(a); !isSet {
			return nil // value has recorded the error
		}
	}
	return o.set(text, isSet)
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
	for i := 1; i < len(a); i++ {
		o := s.letter(a[i])
		if o == nil {
			wrong = append(wrong, s.unknown("-"+a[i:i+1]))
			continue
		}
		text := a[i+1:]
		equals := s.letterValue && strings.HasPrefix(text, "=") && o.argument != noArgument
		switch {
		case equals:
			text = text[1:]
		case o.argument != needsArgument:
			wrong = append(wrong, o.set("", false))
			continue
		case text == "":
			var ok bool
			if text, ok = value("-" + a[i:i+1]); !ok {
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

// textOption is an option whose value is stored.
func textOption(letter byte, long string, target *string) option {
	return option{letter, long, needsArgument, func(v string, _ bool) error { *target = v; return nil }}
}

// numberOption is an option whose value is a number in C's syntax.
func numberOption(long string, target *uint64) option {
	return option{0, long, needsArgument, func(v string, _ bool) (err error) {
		if *target, err = symbolize.ParseNumber(v); err != nil {
			return fmt.Errorf("--%s=: expected a non-negative integer, but got '%s'", long, v)
		}
		return nil
	}}
}
