// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"strings"
	"testing"
)

func TestModulesOfTheCommandLine(t *testing.T) {
	const file = "paths.go" // a file that is there
	for _, test := range []struct {
		flags   []string
		want    map[string]string
		problem string
	}{
		{nil, map[string]string{}, ""},
		{[]string{"libx.so=" + file, "/lib/a=b.so=" + file}, map[string]string{"libx.so": file, "/lib/a=b.so": file}, ""},
		{[]string{"libx.so"}, nil, "expected NAME=FILE"},
		{[]string{"=" + file}, nil, "expected NAME=FILE"},
		{[]string{"libx.so="}, nil, "expected NAME=FILE"},
		{[]string{"libx.so=none"}, nil, "no such file"},
		{[]string{"libx.so=."}, nil, "not a regular file"},
		{[]string{"libx.so=" + file, "libx.so=main.go"}, nil, "libx.so is both paths.go and main.go"},
	} {
		f := fileFlags{modules: test.flags}
		got, err := f.modulesByName()
		switch {
		case test.problem == "" && (err != nil || !maps.Equal(got, test.want)):
			t.Errorf("%q: %v, %v, expected %v", test.flags, got, err, test.want)
		case test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)):
			t.Errorf("%q: %v, expected %q", test.flags, err, test.problem)
		}
	}
}
