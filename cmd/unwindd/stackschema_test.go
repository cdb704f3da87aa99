// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/schema"
)

// isStackJSON says whether a command line asks for the JSON of stacks.
func isStackJSON(args []string) bool {
	i := slices.Index(args, "--format")
	return len(args) > 0 && args[0] == "stack" && i > 0 && i+1 < len(args) && args[i+1] == "json" &&
		!slices.Contains(args, "--help")
}

// written is what a command wrote where its arguments say: its standard output, or a file.
func written(t *testing.T, args []string, stdout *bytes.Buffer) *bytes.Buffer {
	t.Helper()
	i := slices.Index(args, "-o")
	if i < 0 || args[i+1] == "-" {
		return stdout
	}
	b, err := os.ReadFile(args[i+1])
	if err != nil {
		t.Error(err)
	}
	return bytes.NewBuffer(b)
}

// validateStack holds the JSON of stacks, a document for each target, against the schema.
func validateStack(t *testing.T, args []string, out *bytes.Buffer) {
	t.Helper()
	stacks := schema.Docs(t, "stack.schema.json")
	if slices.Contains(args, "--signature") {
		stacks = stacks.Definition("signature")
	}
	for d := json.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		var report any
		if err := d.Decode(&report); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%v: %v", args, err)
			return
		}
		for i, wrong := range stacks.Check("stack", report) {
			if i == 10 {
				return
			}
			t.Errorf("%v: %s", args, wrong)
		}
	}
}

// TestVersionIsFirst of what a reader meets.
func TestVersionIsFirst(t *testing.T) {
	out, stderr, status := unwindd(t, "stack", "--format", "json", serverCore)
	if status != exitDone || !strings.HasPrefix(out, "{\n \"version\": 1,\n ") {
		t.Errorf("status %d: %s%.80s", status, stderr, out)
	}
}

// TestPageIsOfOneTarget: two pages behind one another would be none.
func TestPageIsOfOneTarget(t *testing.T) {
	for _, targets := range [][]string{{serverCore, serverCore}, {crashDir}} {
		out, stderr, status := unwindd(t, append([]string{"stack", "--format", "html"}, targets...)...)
		if status != exitUsage || out != "" || !strings.Contains(stderr, "--format html: expected one target") {
			t.Errorf("%v: status %d: %s%.80s", targets, status, stderr, out)
		}
	}
}
