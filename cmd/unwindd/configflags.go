// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/internal/ondemand"
)

// This file has the tables of the configuration file whose keys are names of flags. What a
// key is, and which values it has, is told by the command's flags themselves.

// flagValues are the values of flags, by their names, in the syntax of the command line:
// several of one flag that may be repeated.
type flagValues map[string][]string

// symbolsTable is the table of the flags by which several commands find files.
const symbolsTable = "symbols"

// flagTables has the tables that commands take, by the commands' names. Commands that have
// none here take the table symbols.
var flagTables = map[string]string{"stack": "stack", "profile": "profile", "serve": "serve", "worker": "serve"}

// tableFlags returns fresh flags of a table, to which values may be set.
func tableFlags(table string) *pflag.FlagSet {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	if table == symbolsTable {
		(&targetFlags{}).addPlaces(all)
		return all
	}
	cmd, _, _ := newRootOf(&globals{}, []string{table}).Find([]string{table})
	for _, set := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) {
			if _, isNone := f.Annotations[onlyOnCommandLine]; !isNone && !f.Hidden {
				all.AddFlag(f)
			}
		})
	}
	return all
}

// onlyOnCommandLine is the annotation of flags that are no settings.
const onlyOnCommandLine = "unwindd_only_on_command_line"

// forCommandLine keeps flags out of the configuration file.
func forCommandLine(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, onlyOnCommandLine, nil) // the error is of a flag that is not there
	}
}

// addFlagTables checks the values of the tables of flags, and keeps them in the syntax of the
// command line. The errors are in the order of their lines.
func (g *globals) addFlagTables(s *settings, text []byte) error {
	s.flags = map[string]flagValues{}
	var lines map[string]int
	wrong := map[int]error{}
	for table, values := range map[string]map[string]any{"serve": s.Serve, "stack": s.Stack, "profile": s.Profile, symbolsTable: s.Symbols} {
		if len(values) == 0 {
			continue
		}
		if lines == nil {
			lines = settingLines(text)
		}
		flags, texts := tableFlags(table), flagValues{}
		for name, value := range values {
			key := table + "." + name
			value, err := settingOf(flags, name, value)
			texts[name] = value
			if errors.Is(err, errNoSetting) {
				err = fmt.Errorf("there is no setting %q, expected %s", key, oneOf(flags))
			} else if err != nil {
				err = fmt.Errorf("%s: %w", key, err)
			}
			if line := lines[key]; err != nil {
				wrong[line] = errors.Join(wrong[line], fmt.Errorf("%s:%d: %w", g.config, line, err))
			}
		}
		s.flags[table] = texts
	}
	var all []error
	for _, line := range slices.Sorted(maps.Keys(wrong)) {
		all = append(all, wrong[line])
	}
	return errors.Join(all...)
}

var errNoSetting = errors.New("no setting")

// settingOf returns the value of a setting in the syntax of its flag.
func settingOf(flags *pflag.FlagSet, name string, value any) (texts []string, err error) {
	flag := flags.Lookup(name)
	if flag == nil {
		return nil, errNoSetting
	}
	kind := settingKind(flag)
	texts, ok := kind.texts(value)
	if !ok {
		return nil, errors.New("expected " + kind.says)
	}
	for _, text := range texts {
		if err := flag.Value.Set(text); err != nil {
			return nil, errors.New(cmp.Or(kind.wrong, err.Error()))
		}
	}
	return texts, nil
}

// valueKind is a kind of values of settings.
type valueKind struct {
	says  string
	wrong string // the error of a value that the flag refuses; "": the flag's own
	texts func(value any) (texts []string, ok bool)
}

// valueKinds has the kinds of values by the types of flags.
var valueKinds = map[string]valueKind{
	"bool":     {"true or false", "", one[bool]},
	"int":      {"a number", "", one[int64]},
	"duration": {`a string with a duration, as "90s" or "2m"`, "expected a duration, as 90s or 2m", one[string]},
	"SIZE":     {`a string with bytes, as "500M" or "4G"`, "", one[string]},
}

// settingKind returns the kind of a flag's values.
func settingKind(flag *pflag.Flag) valueKind {
	if _, isList := flag.Value.(pflag.SliceValue); isList {
		return valueKind{"a list of strings", "", list}
	}
	if kind, ok := valueKinds[flag.Value.Type()]; ok {
		return kind
	}
	return valueKind{"a string", "", one[string]}
}

// one returns the text of a value of a type.
func one[T bool | int64 | string](value any) (texts []string, ok bool) {
	v, ok := value.(T)
	return []string{fmt.Sprint(v)}, ok
}

// list returns the texts of a list of strings.
func list(value any) (texts []string, ok bool) {
	all, ok := value.([]any)
	for _, v := range all {
		text, isString := v.(string)
		if !isString {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, ok
}

// oneOf lists the names of flags.
func oneOf(flags *pflag.FlagSet) string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) }) // in order
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// applySettings sets the flags that are not on the command line to the values of the
// configuration file. A command's own table counts more than the table symbols.
func (g *globals) applySettings(cmd *cobra.Command) error {
	if g.config == "" || cmd.Parent() != cmd.Root() {
		return nil
	}
	table, hasTable := flagTables[cmd.Name()]
	var places *pflag.FlagSet
	if table != "serve" { // a server serves others: its files are named in its own table alone
		places = tableFlags(symbolsTable)
	}
	if !hasTable && !hasOneOf(cmd.Flags(), places) {
		return nil
	}
	s, err := g.settings()
	if err != nil {
		return err
	}
	values := flagValues{}
	if places != nil {
		maps.Copy(values, s.flags[symbolsTable])
	}
	maps.DeleteFunc(values, func(name string, _ []string) bool { return !isSame(cmd.Flags(), places.Lookup(name)) })
	maps.Copy(values, s.flags[table])
	for name, texts := range values {
		flag := cmd.Flags().Lookup(name)
		if flag == nil || isOnCommandLine(cmd.Flags(), flag) { // a worker has no fleet to hand over to
			continue
		}
		for _, text := range texts {
			if err := flag.Value.Set(text); err != nil {
				return fmt.Errorf("%s: %s: %w", g.config, name, err)
			}
		}
		g.reads(texts...)
		g.applied = append(g.applied, name)
	}
	slices.Sort(g.applied)
	return nil
}

// isOnCommandLine reports whether the command line sets a flag, by whichever of its names.
func isOnCommandLine(flags *pflag.FlagSet, flag *pflag.Flag) bool {
	isSet := flag.Changed
	flags.Visit(func(f *pflag.Flag) {
		other, ok := f.Value.(*otherName)
		isSet = isSet || ok && other.here == flag.Name
	})
	return isSet
}

// hasOneOf reports whether a command has one of the flags of a table.
func hasOneOf(flags, table *pflag.FlagSet) bool {
	found := false
	if table != nil {
		table.VisitAll(func(f *pflag.Flag) { found = found || isSame(flags, f) })
	}
	return found
}

// isSame reports whether a command has a flag of a table: of its name, and of its type.
func isSame(flags *pflag.FlagSet, flag *pflag.Flag) bool {
	own := flags.Lookup(flag.Name)
	return own != nil && own.Value.Type() == flag.Value.Type()
}

// flagNames are the flags that an error names.
var flagNames = ondemand.Regexp(`--[a-z][a-z-]*`)

// withSettings adds to an error about a flag that the configuration file sets it.
func (g *globals) withSettings(err error) error {
	if err == nil {
		return nil
	}
	named := flagNames().FindAllString(err.Error(), -1)
	for _, name := range g.applied {
		if slices.Contains(named, "--"+name) {
			return errors.Join(err, fmt.Errorf("%s sets --%s", g.config, name))
		}
	}
	return err
}
