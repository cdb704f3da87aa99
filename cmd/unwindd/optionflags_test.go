// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// flagged are options with the flags that set them.
type flagged struct {
	options proto.Message
	flags   *pflag.FlagSet
}

// optionFlags makes the options and the flags of each command whose options go over the wire.
var optionFlags = map[string]func() flagged{
	"stack": func() flagged {
		j := job.Stack{StackOptions: &pb.StackOptions{}}
		f := flagged{j, pflag.NewFlagSet("", pflag.ContinueOnError)}
		addStackFlags(f.flags, &j)
		return f
	},
	"profile": func() flagged {
		j := job.Profile{ProfileOptions: &pb.ProfileOptions{}}
		f := flagged{j, pflag.NewFlagSet("", pflag.ContinueOnError)}
		addProfileFlags(f.flags, &j)
		return f
	},
	"snapshot": func() flagged { // the command adds its one flag itself
		return flagged{&pb.SnapshotOptions{}, pflag.NewFlagSet("", pflag.ContinueOnError)}
	},
	"eval": func() flagged {
		j := job.Evaluate{EvaluateOptions: &pb.EvaluateOptions{}}
		f := flagged{j, pflag.NewFlagSet("", pflag.ContinueOnError)}
		addEvalFlags(f.flags, &j)
		return f
	},
}

// sharedFlags are the flags of options that commands set themselves, because the flags do more,
// by the options' names; "": there is no flag.
var sharedFlags = map[protoreflect.Name]string{"name": "", "format": "format", "no_symbols": "symbols", "files": "files"}

// TestEveryOptionHasItsFlag sets each option of each command by its flag, and finds the flag in the
// command and in the document about it. An option is its field in unwindd.proto, its flag and its
// text: whoever adds one to the first and forgets another is told here. TestEveryOptionIsTaken of
// engine/service is about the way to a worker.
func TestEveryOptionHasItsFlag(t *testing.T) {
	for command, makeFlags := range optionFlags {
		text, err := os.ReadFile(filepath.Join("../../docs", command+".md"))
		if err != nil {
			t.Fatal(err)
		}
		cmd, _, err := newRoot().Find([]string{command})
		if err != nil {
			t.Fatal(err)
		}
		fields := makeFlags().options.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			name, isShared := sharedFlags[field.Name()]
			if !isShared {
				name = strings.ReplaceAll(string(field.Name()), "_", "-")
				checkFlagSets(t, makeFlags(), name, field)
			}
			switch {
			case name == "":
			case cmd.Flag(name) == nil:
				t.Errorf("unwindd %s has no flag --%s for %s", command, name, field.FullName())
			case !regexp.MustCompile("--" + name + `\b[^-]`).Match(text):
				t.Errorf("docs/%s.md does not name --%s", command, name)
			}
		}
		makeFlags().flags.VisitAll(func(f *pflag.Flag) {
			if job.Field(makeFlags().options.ProtoReflect(), f.Name) == nil {
				t.Errorf("unwindd %s: --%s is no option of %T", command, f.Name, makeFlags().options)
			}
		})
	}
}

// checkFlagSets sets a flag, which has to set its option and no other.
func checkFlagSets(t *testing.T, f flagged, name string, field protoreflect.FieldDescriptor) {
	t.Helper()
	value := "1"
	if field.Kind() == protoreflect.BoolKind {
		value = "true"
	}
	if err := f.flags.Set(name, value); err != nil {
		t.Errorf("%s: %v", field.FullName(), err)
	}
	m := f.options.ProtoReflect()
	got := m.Get(field).String()
	if field.IsList() && m.Get(field).List().Len() == 1 {
		got = m.Get(field).List().Get(0).String()
	}
	if got != value {
		t.Errorf("--%s %s sets %s to %s", name, value, field.FullName(), got)
	}
	m.Range(func(other protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if other != field {
			t.Errorf("--%s %s sets %s to %v", name, value, other.FullName(), v)
		}
		return true
	})
}

// TestNumbersOfOptions has numbers at the ends of what flags take.
func TestNumbersOfOptions(t *testing.T) {
	for _, c := range []struct {
		command, flag, value string
		want                 uint64
		says                 string // why it is refused
	}{
		{"stack", "top", "0x10", 16, ""},
		{"stack", "top", "99999999999", 1<<32 - 1, ""}, // all there are, either way
		{"stack", "top", "0", 0, "--top 0: expected 1 or more"},
		{"stack", "top", "ten", 0, "invalid syntax"},
		{"stack", "max-frames", "0", 0, ""},
		{"stack", "lane", "0", 0, ""},
		{"stack", "lane", "99999999999", 0, "--lane 99999999999: expected 0 to 4095"},
		{"profile", "max-stack", "0", 0, "--max-stack 0: expected 1 or more"},
		{"eval", "iteration", "99999999999", 99999999999, ""},
		{"eval", "iteration", "-1", 0, "--iteration -1: expected 0 or more"},
	} {
		f := optionFlags[c.command]()
		err := f.flags.Set(c.flag, c.value)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("--%s %s: %v, expected %q", c.flag, c.value, err, c.says)
		}
		m := f.options.ProtoReflect()
		field := job.Field(m, c.flag)
		if got := m.Get(field); m.Has(field) != (err == nil) || err == nil && got.String() != protoreflect.ValueOf(c.want).String() {
			t.Errorf("--%s %s: %v, expected %d", c.flag, c.value, got, c.want)
		}
	}
}
