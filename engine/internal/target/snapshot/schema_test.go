// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/sdk"
)

const schemaPath = "../../../../docs/snapshot.schema.json"

// A schema is a JSON Schema of the few keywords that the document uses.
type schema struct {
	root obj
}

func readSchema(t testing.TB) *schema {
	t.Helper()
	b, err := os.ReadFile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	s := &schema{}
	if err := json.Unmarshal(b, &s.root); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *schema) definition(name string) obj {
	d, _ := s.root["$defs"].(obj)[name].(obj)
	return d
}

// check says what of a value is not as the schema has it. A keyword that it
// does not know is a finding too: it would not be checked.
func (s *schema) check(at string, v any, sch obj) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, at+": "+fmt.Sprintf(format, args...)) }
	for _, keyword := range slices.Sorted(maps.Keys(sch)) {
		want := sch[keyword]
		number, isNumber := v.(float64)
		text, isText := v.(string)
		list, isList := v.([]any)
		object, isObject := v.(obj)
		switch keyword {
		case "$schema", "$id", "$defs", "title", "description":
		case "$ref":
			d := s.definition(strings.TrimPrefix(want.(string), "#/$defs/"))
			if d == nil {
				say("there is no %s", want)
			}
			wrong = append(wrong, s.check(at, v, d)...)
		case "type":
			ok := map[string]bool{
				"object": isObject, "array": isList, "string": isText, "integer": isNumber && number == float64(int64(number)),
				"boolean": v == true || v == false,
			}[want.(string)]
			if !ok {
				say("%v is not of type %s", v, want)
			}
		case "const":
			if v != want {
				say("%v is not %v", v, want)
			}
		case "enum":
			if !slices.Contains(want.([]any), v) {
				say("%v is not in %v", v, want)
			}
		case "minimum":
			if isNumber && number < want.(float64) {
				say("%v is less than %v", v, want)
			}
		case "maximum":
			if isNumber && number > want.(float64) {
				say("%v is more than %v", v, want)
			}
		case "pattern":
			if isText && !regexp.MustCompile(want.(string)).MatchString(text) {
				say("%q does not match %s", text, want)
			}
		case "maxLength":
			if isText && utf8.RuneCountInString(text) > int(want.(float64)) {
				say("is longer than %v", want)
			}
		case "minItems":
			if isList && len(list) < int(want.(float64)) {
				say("has fewer than %v elements", want)
			}
		case "maxItems":
			if isList && len(list) > int(want.(float64)) {
				say("has more than %v elements", want)
			}
		case "maxProperties":
			if isObject && len(object) > int(want.(float64)) {
				say("has more than %v members", want)
			}
		case "items":
			for i, e := range list {
				wrong = append(wrong, s.check(fmt.Sprintf("%s[%d]", at, i), e, want.(obj))...)
			}
		case "required":
			for _, name := range want.([]any) {
				if _, ok := object[name.(string)]; isObject && !ok {
					say("has no %s", name)
				}
			}
		case "properties":
			for name, sub := range want.(obj) {
				if e, ok := object[name]; ok {
					wrong = append(wrong, s.check(at+"."+name, e, sub.(obj))...)
				}
			}
		case "additionalProperties":
			for name, e := range object {
				if properties, _ := sch["properties"].(obj); properties[name] == nil {
					wrong = append(wrong, s.check(at+"."+name, e, want.(obj))...)
				}
			}
		case "anyOf":
			fits := false
			for _, sub := range want.([]any) {
				fits = fits || len(s.check(at, v, sub.(obj))) == 0
			}
			if !fits {
				say("%v is none of the alternatives", v)
			}
		default:
			say("the schema has an unknown keyword %q", keyword)
		}
	}
	return wrong
}

func TestSchemaHasTheMembersThatAreRead(t *testing.T) {
	s := readSchema(t)
	for _, tt := range []struct {
		name string
		read []string
		have obj
	}{
		{"the document", names(documentFields), s.root},
		{"module", names(moduleFields), s.definition("module")},
		{"segment", names(segmentFields), s.definition("segment")},
		{"thread", names(threadFields), s.definition("thread")},
		{"stop", names(stopFields), s.definition("stop")},
		{"space", names(spaceFields), s.definition("space")},
		{"wave", names(waveFields), s.definition("wave")},
		{"launch", names(launchFields), s.definition("launch")},
		{"memory", names(pieceFields), s.definition("memory")},
		{"scope", names(scopeFields), s.definition("scope")},
	} {
		have := slices.Sorted(maps.Keys(tt.have["properties"].(obj)))
		slices.Sort(tt.read)
		if d := cmp.Diff(tt.read, have); d != "" {
			t.Errorf("%s (-reader +schema):\n%s", tt.name, d)
		}
	}
	var reasons []any
	for _, r := range sdk.StopReasons {
		reasons = append(reasons, r.Name)
	}
	if d := cmp.Diff(reasons, s.definition("stop")["properties"].(obj)["reason"].(obj)["enum"]); d != "" {
		t.Errorf("reasons (-reader +schema):\n%s", d)
	}
	// The bounds are those of the reader.
	most := func(sch obj, name string) float64 { return sch["properties"].(obj)[name].(obj)["maxItems"].(float64) }
	for _, tt := range []struct {
		name       string
		have, want float64
	}{
		{"modules", most(s.root, "modules"), maxModules},
		{"threads", most(s.root, "threads"), maxThreads},
		{"memory", most(s.root, "memory"), maxPieces},
		{"segments", most(s.definition("module"), "segments"), maxSegments},
		{"frames", most(s.definition("launch"), "frames"), maxFrames},
		{"trap_id", s.definition("stop")["properties"].(obj)["trap_id"].(obj)["maximum"].(float64), maxTrapID},
		{"text", s.definition("text")["maxLength"].(float64), jsontext.MaxText},
	} {
		if tt.have != tt.want {
			t.Errorf("%s: the schema has %v, the reader %v", tt.name, tt.have, tt.want)
		}
	}
}

func names[T any](fields []jsontext.Field[T]) []string {
	var list []string
	for _, f := range fields {
		list = append(list, f.Name)
	}
	return list
}

func TestSchemaAcceptsWhatIsReadAndNothingElse(t *testing.T) {
	s := readSchema(t)
	parse := func(v any) any {
		var out any
		if err := json.Unmarshal(documentOf(t, v).data, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	d, files := full()
	if wrong := s.check("", parse(d), s.root); len(wrong) > 0 {
		t.Errorf("a snapshot with everything in it: %q", wrong)
	}
	if p := problems(openDocument(t, d, files...)); len(p) > 0 {
		t.Errorf("the reader says %q of it", p)
	}
	// Each member, when it is a value that no member can have, is one that both
	// refuse: the reader by an error or a problem.
	var spoil func(v any, set func(any), path string)
	count := 0
	spoil = func(v any, set func(any), path string) {
		switch v := v.(type) {
		case obj:
			for name, e := range v {
				if name != "comment" && path+"."+name != ".threads[0].registers.x1" {
					spoil(e, func(e any) { v[name] = e }, path+"."+name)
				}
			}
		case []any:
			for i, e := range v {
				spoil(e, func(e any) { v[i] = e }, fmt.Sprintf("%s[%d]", path, i))
			}
		}
		set([]any{"a", -1, true, nil})
		count++
		if wrong := s.check("", parse(d), s.root); len(wrong) == 0 {
			t.Errorf("%s: the schema accepts a list of anything", path)
		}
		if _, err := Open(write(t, archiveOf(t, documentOf(t, d))), options()); err == nil {
			t.Errorf("%s: the reader accepts a list of anything", path)
		}
		set(v)
	}
	for name, v := range d {
		if name != "comment" {
			spoil(v, func(v any) { d[name] = v }, "."+name)
		}
	}
	if count < 100 {
		t.Errorf("%d members were spoilt", count)
	}
}
