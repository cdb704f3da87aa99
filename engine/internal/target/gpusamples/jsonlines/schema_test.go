// SPDX-License-Identifier: Apache-2.0

package jsonlines

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/internal/target/linetext"
)

type obj = map[string]any

func definition(t *testing.T, name string) obj {
	t.Helper()
	b, err := os.ReadFile("../../../../../docs/gpu-samples.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var root obj
	if err := json.Unmarshal(b, &root); err != nil {
		t.Fatal(err)
	}
	d, ok := root["$defs"].(obj)[name].(obj)
	if !ok {
		t.Fatalf("the schema has no %s", name)
	}
	return d
}

func names[T any](fields []jsontext.Field[T]) (list []string) {
	for _, f := range fields {
		list = append(list, f.Name)
	}
	slices.Sort(list)
	return list
}

func TestSchemaHasTheMembersThatAreRead(t *testing.T) {
	for name, read := range map[string][]string{
		"format": names(formatFields), "module": names(moduleFields), "segment": names(segmentFields), "launch": names(launchFields),
		"sample": names(sampleFields), "wave": names(waveFields), "launched_by": names(launchedByFields),
	} {
		if d := cmp.Diff(read, slices.Sorted(maps.Keys(definition(t, name)["properties"].(obj)))); d != "" {
			t.Errorf("%s (-reader +schema):\n%s", name, d)
		}
	}
	member := func(name, member string) obj { return definition(t, name)["properties"].(obj)[member].(obj) }
	for name, n := range map[string][2]any{
		"text":     {definition(t, "text")["maxLength"], maxText},
		"id":       {definition(t, "id")["anyOf"].([]any)[0].(obj)["maxLength"], maxText},
		"frames":   {definition(t, "frames")["maxItems"], maxFrames},
		"segments": {member("module", "segments")["maxItems"], maxSegments},
		"lanes":    {member("sample", "lanes")["maximum"], maxLanes},
		"weight":   {member("sample", "weight")["maximum"], maxWeight},
	} {
		if n[0].(float64) != float64(n[1].(int)) {
			t.Errorf("%s: the schema has %v, the reader %v", name, n[0], n[1])
		}
	}
}

// What the schema requires is what the reader does not go without.
func TestSchemaRequiresWhatTheReaderDoes(t *testing.T) {
	for name, line := range map[string]obj{
		"format":      {"record": "format", "format_version": 1},
		"module":      {"record": "module", "id": 1, "arch": "gpu", "path": "/a", "processor": "p"},
		"segment":     {"address": "0x1", "size": "0x1", "start": "0x1", "section": "s"},
		"launch":      {"record": "launch", "id": 1, "pid": 1, "tid": 1, "frames": []any{}, "comm": "c", "time": 1},
		"sample":      {"record": "sample", "pc": "0x1", "time": 1, "weight": 1, "event": "e", "lanes": 1, "exec_mask": "0x1"},
		"launched_by": {"pid": 1, "tid": 1, "frames": []any{}, "comm": "c", "time": 1},
	} {
		d := definition(t, name)
		required := map[string]bool{}
		for _, list := range append(alternatives(d), d["required"]) {
			names, _ := list.([]any)
			for _, n := range names {
				required[n.(string)] = true
			}
		}
		for member := range line {
			without := maps.Clone(line)
			delete(without, member)
			var text []byte
			switch name {
			case "segment":
				text, _ = json.Marshal(obj{"record": "module", "id": 1, "arch": "gpu", "path": "/a", "segments": []any{without}})
			case "launched_by":
				text, _ = json.Marshal(obj{"record": "sample", "pc": "0x1", "launched_by": without})
			default:
				text, _ = json.Marshal(without)
			}
			f, err := open(linetext.New("test", []byte(header+string(text))))
			if err != nil {
				t.Fatal(err)
			}
			if refused := len(f.Problems()) > 0; refused != required[member] {
				t.Errorf("%s without %s: required is %v, the reader says %q", name, member, required[member], f.Problems())
			}
		}
	}
}

// alternatives are the lists of members of which one is required.
func alternatives(d obj) (lists []any) {
	list, _ := d["anyOf"].([]any)
	for _, a := range list {
		lists = append(lists, a.(obj)["required"])
	}
	return lists
}

// The lines of the document's examples are read without a problem.
func TestExamplesOfTheDocumentAreRead(t *testing.T) {
	b, err := os.ReadFile("../../../../../docs/gpu-samples.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "```json\n")
	text, _, ended := strings.Cut(rest, "```")
	if !ok || !ended {
		t.Fatal("the document has no example")
	}
	f, problems := opened(t, text)
	if len(problems) > 0 {
		t.Errorf("problems %q", problems)
	}
	if samples := collect(t, f); len(samples) == 0 || samples[0].Launch == nil || samples[0].Module < 0 || !samples[0].HasLanes {
		t.Errorf("samples %+v", samples)
	}
}
