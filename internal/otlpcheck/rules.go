// SPDX-License-Identifier: Apache-2.0

// Package otlpcheck checks messages of OTLP by their rules, and compares them with the
// same profile in other formats, for tests.
package otlpcheck

import (
	"fmt"
	"slices"

	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
)

// Check lists the violations of the rules of profiles.proto in a message: each index is
// within its table, tables begin with the zero value and have nothing twice and nothing
// that is not used, samples of a profile have one shape and are each of an identity of
// its own, attributes of one thing have different names, mappings have a place or none.
func Check(d *profiles.ProfilesData) []string {
	c := &checker{dictionary: d.GetDictionary(), used: map[string]map[int]bool{}}
	c.tables()
	c.entries()
	if len(d.ResourceProfiles) == 0 {
		c.wrong("no resource profiles")
	}
	for i, r := range d.ResourceProfiles {
		if len(r.ScopeProfiles) == 0 {
			c.wrong("resource %d has no scope", i)
		}
		for _, a := range r.Resource.GetAttributes() {
			c.use(fmt.Sprintf("resource %d", i), "string", a.KeyStrindex)
		}
		for _, s := range r.ScopeProfiles {
			if len(s.Profiles) == 0 {
				c.wrong("resource %d has a scope without profiles", i)
			}
			for j, p := range s.Profiles {
				c.profile(fmt.Sprintf("resource %d, profile %d", i, j), p)
			}
		}
	}
	c.orphans()
	return c.problems
}

type checker struct {
	dictionary *profiles.ProfilesDictionary
	sizes      map[string]int
	used       map[string]map[int]bool // indices, by table
	problems   []string
}

func (c *checker) wrong(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// use records references to entries of a table.
func (c *checker) use(what, table string, indices ...int32) {
	if c.used[table] == nil {
		c.used[table] = map[int]bool{0: true}
	}
	for _, i := range indices {
		if i < 0 || int(i) >= c.sizes[table] {
			c.wrong("%s: %d is not within the %d entries of the %s table", what, i, c.sizes[table], table)
			continue
		}
		c.used[table][int(i)] = true
	}
}

// tables checks that each table begins with the zero value and has nothing twice.
func (c *checker) tables() {
	d := c.dictionary
	c.sizes = map[string]int{
		"mapping": table(c, "mapping", d.GetMappingTable()), "location": table(c, "location", d.GetLocationTable()),
		"function": table(c, "function", d.GetFunctionTable()), "link": table(c, "link", d.GetLinkTable()),
		"attribute": table(c, "attribute", d.GetAttributeTable()), "stack": table(c, "stack", d.GetStackTable()),
		"string": len(d.GetStringTable()),
	}
	seen := map[string]bool{}
	for i, s := range d.GetStringTable() {
		if seen[s] {
			c.wrong("string %d, %q, is there twice", i, s)
		}
		seen[s] = true
	}
	if !seen[""] || d.GetStringTable()[0] != "" {
		c.wrong("the string table does not begin with an empty one")
	}
}

func table[M proto.Message](c *checker, name string, entries []M) int {
	seen := map[string]bool{}
	for i, m := range entries {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		switch {
		case err != nil:
			c.wrong("%s %d: %v", name, i, err)
		case i == 0 && len(b) > 0 && !isEmptyAttribute(m):
			c.wrong("the %s table does not begin with the zero value", name)
		case seen[string(b)]:
			c.wrong("%s %d is there twice: %v", name, i, m)
		}
		seen[string(b)] = true
	}
	if len(entries) == 0 {
		c.wrong("the %s table is empty", name)
	}
	return len(entries)
}

// isEmptyAttribute reports whether an entry is an attribute of nothing. The collector writes
// its value as one that is there and empty, which means the same.
func isEmptyAttribute(m proto.Message) bool {
	a, ok := m.(*profiles.KeyValueAndUnit)
	return ok && a.KeyStrindex == 0 && a.UnitStrindex == 0 && a.Value.GetValue() == nil
}

// entries checks the references of the entries of tables.
func (c *checker) entries() {
	d := c.dictionary
	for i, m := range d.GetMappingTable() {
		what := fmt.Sprintf("mapping %d", i)
		c.use(what, "string", m.FilenameStrindex)
		c.attributes(what, m.AttributeIndices)
		if m.MemoryStart >= m.MemoryLimit && (m.MemoryStart != 0 || m.MemoryLimit != 0) {
			c.wrong("%s is from %#x to %#x", what, m.MemoryStart, m.MemoryLimit)
		}
	}
	for i, l := range d.GetLocationTable() {
		what := fmt.Sprintf("location %d", i)
		c.use(what, "mapping", l.MappingIndex)
		c.attributes(what, l.AttributeIndices)
		for _, line := range l.Lines {
			c.use(what, "function", line.FunctionIndex)
			if line.Line < 0 || line.Column < 0 {
				c.wrong("%s has line %d, column %d", what, line.Line, line.Column)
			}
		}
	}
	for i, f := range d.GetFunctionTable() {
		c.use(fmt.Sprintf("function %d", i), "string", f.NameStrindex, f.SystemNameStrindex, f.FilenameStrindex)
		if f.StartLine < 0 {
			c.wrong("function %d begins in line %d", i, f.StartLine)
		}
	}
	for i, a := range d.GetAttributeTable() {
		c.use(fmt.Sprintf("attribute %d", i), "string", a.KeyStrindex, a.UnitStrindex)
		if i > 0 && a.Value.GetValue() == nil {
			c.wrong("attribute %d has no value", i)
		}
	}
	for i, s := range d.GetStackTable() {
		c.use(fmt.Sprintf("stack %d", i), "location", s.LocationIndices...)
	}
}

// attributes checks references to attributes.
func (c *checker) attributes(what string, indices []int32) {
	c.use(what, "attribute", indices...)
	seen := map[int32]bool{}
	for _, i := range indices {
		if i < 1 || int(i) >= c.sizes["attribute"] {
			continue
		}
		key := c.dictionary.AttributeTable[i].KeyStrindex
		if seen[key] {
			c.wrong("%s has two attributes of the same name", what)
		}
		seen[key] = true
	}
}

func (c *checker) profile(what string, p *profiles.Profile) {
	for _, t := range []*profiles.ValueType{p.SampleType, p.PeriodType} {
		c.use(what, "string", t.GetTypeStrindex(), t.GetUnitStrindex())
	}
	c.attributes(what, p.AttributeIndices)
	seen := map[string]bool{}
	for i, s := range p.Samples {
		sample := fmt.Sprintf("%s, sample %d", what, i)
		c.use(sample, "stack", s.StackIndex)
		c.use(sample, "link", s.LinkIndex)
		c.attributes(sample, s.AttributeIndices)
		if len(s.Values) != 1 || len(s.TimestampsUnixNano) != 0 {
			c.wrong("%s has %d values and %d times", sample, len(s.Values), len(s.TimestampsUnixNano))
		}
		attributes := slices.Clone(s.AttributeIndices)
		slices.Sort(attributes)
		identity := fmt.Sprint(s.StackIndex, s.LinkIndex, attributes)
		if seen[identity] {
			c.wrong("%s is of the same stack and attributes as another one", sample)
		}
		seen[identity] = true
	}
}

// orphans checks that everything is used.
func (c *checker) orphans() {
	for name, size := range c.sizes {
		for i := 1; i < size; i++ {
			if !c.used[name][i] {
				c.wrong("%s %d is not used", name, i)
			}
		}
	}
}
