// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/engine/trace"
)

// number is the value of a flag that sets an option to a number of its range.
type number[T uint32 | *uint32 | *int64] struct {
	option *T // not set where the flag is not
	name   string
	limits job.Range
	text   string // the number, or the default
}

// addNumber adds a flag of an option that is a number. usual is its default; 0: it has none.
func addNumber[T uint32 | *uint32 | *int64](flags *pflag.FlagSet, option *T, ranges job.Ranges, name string, usual int, usage string) {
	text := ""
	if usual > 0 {
		text = strconv.Itoa(usual)
	}
	flags.Var(&number[T]{option, name, ranges[name], text}, name, usage)
}

func (n *number[T]) String() string { return n.text }
func (n *number[T]) Type() string   { return "int" }

// Set implements pflag.Value. A number larger than the option can hold is as good as the largest.
func (n *number[T]) Set(text string) error {
	wide, err := strconv.ParseInt(text, 0, 64)
	if err == nil {
		err = n.limits.Check(n.name, wide)
	}
	if err != nil {
		return err
	}
	n.text = text
	narrow := uint32(min(wide, math.MaxUint32)) //nolint:gosec // no range has negative numbers
	switch option := any(n.option).(type) {
	case *uint32:
		*option = narrow
	case **uint32:
		*option = &narrow
	case **int64:
		*option = &wide
	}
	return nil
}

// toggle is the value of a flag that turns an option on or off, whose default depends.
type toggle struct{ option **bool }

// addSwitch adds a flag of an option that is on, off or not set.
func addSwitch(flags *pflag.FlagSet, option **bool, name, usage string) {
	flags.VarPF(toggle{option}, name, "", usage).NoOptDefVal = "true"
}

func (s toggle) Type() string     { return "bool" }
func (s toggle) IsBoolFlag() bool { return true }

func (s toggle) String() string {
	if s.option == nil || *s.option == nil {
		return ""
	}
	return strconv.FormatBool(**s.option)
}

// Set implements pflag.Value.
func (s toggle) Set(text string) error {
	isOn, err := strconv.ParseBool(text)
	if err == nil {
		*s.option = &isOn
	}
	return err
}

// otherName is the value of a flag that does what another one does: other commands, or older
// versions of this one, call it so.
type otherName struct {
	pflag.Value
	name, here string
}

// Set implements pflag.Value.
func (o *otherName) Set(text string) error {
	messages.Printf("unwindd: --%s is --%s here\n", o.name, o.here)
	return o.Value.Set(text)
}

// addOtherName adds a hidden flag that does what another one does.
func addOtherName(flags *pflag.FlagSet, name, here string) {
	f := flags.Lookup(here)
	flags.AddFlag(&pflag.Flag{
		Name: name, Usage: "the same as --" + here, Value: &otherName{f.Value, name, here}, DefValue: f.DefValue, NoOptDefVal: f.NoOptDefVal, Hidden: true,
	})
}

// addLimits adds the flags that bound the printing of variables.
func addLimits(flags *pflag.FlagSet, depth, elements *uint32, raw *bool) {
	addNumber(flags, depth, job.LimitRanges, "depth", trace.DefaultValueLimits.Depth, "print `N` levels of values within one another")
	addNumber(flags, elements, job.LimitRanges, "elements", trace.DefaultValueLimits.Elements, "print `N` elements of an array or a container, and characters of a string")
	flags.BoolVar(raw, "raw", false, "print containers as their implementation is")
}
