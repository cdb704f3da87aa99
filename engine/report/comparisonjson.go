// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"strconv"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

// ComparisonVersion is the version of the JSON of a comparison. It changes when a member changes its
// meaning or goes.
const ComparisonVersion = 1

// jsonTarget is a trace.ComparedTarget.
type jsonTarget struct {
	Path     string            `json:"path"`
	Labels   map[string]string `json:"labels"`
	PID      int64             `json:"pid,omitempty"`
	Moments  []string          `json:"moments"`
	Count    int               `json:"count"`
	Class    int               `json:"class"`
	Variant  int               `json:"variant"`
	Threads  int               `json:"threads"`
	Problems []string          `json:"problems"`
}

// jsonClass is a trace.TargetClass.
type jsonClass struct {
	Targets   []int             `json:"targets"`
	Labels    map[string]string `json:"labels"`
	Signature string            `json:"signature,omitempty"`
	Unread    string            `json:"unread,omitempty"`
	Facts     []string          `json:"facts"`
	Builds    []jsonBuild       `json:"builds"`
	Threads   []jsonClassThread `json:"threads"`
	PartsAt   *jsonParting      `json:"parts_at,omitempty"`
	Variants  []jsonVariant     `json:"variants"`
}

type jsonBuild struct {
	Name    string `json:"name"`
	BuildID string `json:"build_id"`
}

// jsonClassThread is a trace.ClassThread. A class may have many, of which few move.
type jsonClassThread struct {
	Role    string `json:"role"`
	Node    *int   `json:"node,omitempty"`
	Moves   bool   `json:"moves,omitempty"`
	Still   bool   `json:"still,omitempty"`
	Crashed bool   `json:"crashed,omitempty"`
	Threads int    `json:"threads"`
	Least   int    `json:"least"`
	Most    int    `json:"most"`
	// Incomplete is how many stacks end before their outermost frame.
	Incomplete int            `json:"incomplete,omitempty"`
	Ends       string         `json:"ends,omitempty"`
	IDs        []jsonThreadID `json:"ids"`
}

type jsonThreadID struct {
	Target int    `json:"target"`
	ID     string `json:"id"`
}

// jsonVariant is a trace.ClassVariant. Its threads have few members: the class has the others.
type jsonVariant struct {
	Targets []int               `json:"targets"`
	Threads []jsonVariantThread `json:"threads"`
}

type jsonVariantThread struct {
	Role    string `json:"role"`
	Node    *int   `json:"node,omitempty"` // by lines
	Threads int    `json:"threads"`
}

type jsonParting struct {
	Role    string              `json:"role"`
	Node    *int                `json:"node,omitempty"`
	Missing bool                `json:"missing,omitempty"`
	Last    *int                `json:"last,omitempty"`
	Here    *int                `json:"here,omitempty"`
	There   []jsonPartingBranch `json:"there"`
	More    int                 `json:"more,omitempty"`
}

type jsonPartingBranch struct {
	Node    *int `json:"node,omitempty"`
	Targets int  `json:"targets"`
	Threads int  `json:"threads"`
}

// jsonNode is a node of the tree by functions.
type jsonNode struct {
	Parent    *int   `json:"parent,omitempty"`
	Function  string `json:"function,omitempty"`
	ShortName string `json:"short_name,omitempty"`
	Module    string `json:"module,omitempty"`
	Offset    string `json:"offset,omitempty"`
	Runtime   string `json:"runtime,omitempty"`
	Inlined   bool   `json:"inlined,omitempty"`
	Wave      bool   `json:"wave,omitempty"`
	Guess     bool   `json:"guess,omitempty"`
	Threads   int    `json:"threads"`
	Ends      int    `json:"ends"`
	Targets   int    `json:"targets"`
	Count     int    `json:"class_count"`
	Classes   []int  `json:"classes,omitempty"`
}

// jsonLine is a node of the tree by lines.
type jsonLine struct {
	Parent  *int   `json:"parent,omitempty"`
	Node    int    `json:"node"` // by functions
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Threads int    `json:"threads"`
	Ends    int    `json:"ends"`
	Targets int    `json:"targets"`
	Count   int    `json:"class_count"`
	Classes []int  `json:"classes,omitempty"`
}

type jsonBuilds struct {
	Name   string              `json:"name"`
	Builds []jsonBuildsTargets `json:"builds"`
}

type jsonBuildsTargets struct {
	BuildID string `json:"build_id,omitempty"`
	Count   int    `json:"count"`
	Targets []int  `json:"targets,omitempty"`
}

// jsonCollective is a trace.Collective.
type jsonCollective struct {
	Group      string   `json:"group,omitempty"`
	Sequence   int64    `json:"sequence"`
	Operation  string   `json:"operation,omitempty"`
	Ranks      string   `json:"ranks,omitempty"`
	Entered    string   `json:"entered,omitempty"`
	Completed  string   `json:"completed,omitempty"`
	Missing    string   `json:"missing,omitempty"`
	Unrecorded string   `json:"unrecorded,omitempty"`
	Different  []string `json:"different"`
	Frames     []string `json:"frames"`
}

// WriteJSON writes the comparison as docs/compare.schema.json describes it, an element of a list on
// each line.
func (c *Comparison) WriteJSON(w io.Writer) error {
	b := newOutput(w)
	b.put(`{"version":`, strconv.Itoa(ComparisonVersion), `,"by_thread":`, strconv.FormatBool(c.c.ByThread))
	if c.c.CrashedOnly {
		b.put(`,"crashed_only":true`)
	}
	d := c.c
	for _, err := range []error{
		elements(b, "targets", d.Targets, newJSONTarget), elements(b, "classes", d.Classes, newJSONClass),
		elements(b, "tree", d.Functions, newJSONNode), elements(b, "lines", d.Lines, newJSONLine),
		elements(b, "modules", d.Modules, newJSONBuilds), elements(b, "collectives", d.Collectives, newJSONCollective),
		elements(b, "problems", d.Problems, func(text *string) any { return *text }),
	} {
		if err != nil {
			return err
		}
	}
	b.put("}\n")
	return b.Flush()
}

// elements writes a member that is a list.
func elements[T any](b output, name string, list []T, element func(*T) any) error {
	b.put(",\n\"", name, `":[`)
	for i := range list {
		if i > 0 {
			b.put(",")
		}
		text, err := marshal(element(&list[i]))
		if err != nil {
			return err
		}
		b.put("\n ", text)
		if err := b.check(); err != nil {
			return err
		}
	}
	b.put("]")
	return nil
}

// present is a list that is there, if empty.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// each makes a list of the elements of another one.
func each[T, U any](list []T, element func(*T) U) []U {
	out := make([]U, len(list))
	for i := range list {
		out[i] = element(&list[i])
	}
	return out
}

// known is an index; nil where it is none.
func known(index int) *int {
	if index < 0 {
		return nil
	}
	return &index
}

func presentLabels(labels map[string]string) map[string]string {
	if labels == nil {
		return map[string]string{}
	}
	return labels
}

func newJSONTarget(t *trace.ComparedTarget) any {
	return &jsonTarget{
		t.Path, presentLabels(t.Labels), t.PID, each(t.Moments, func(m *time.Time) string { return m.UTC().Format(time.RFC3339Nano) }),
		t.Count, t.Class, t.Variant, t.Threads, present(t.Problems),
	}
}

func newJSONClass(c *trace.TargetClass) any {
	j := &jsonClass{
		Targets: present(c.Targets), Labels: presentLabels(c.Labels), Signature: c.Signature, Unread: c.Unread, Facts: present(c.Facts),
		Builds:  each(c.Builds, func(b *trace.ModuleBuild) jsonBuild { return jsonBuild(*b) }),
		Threads: each(c.Threads, newJSONClassThread),
		Variants: each(c.Variants, func(v *trace.ClassVariant) jsonVariant {
			return jsonVariant{present(v.Targets), each(v.Threads, func(t *trace.ClassThread) jsonVariantThread {
				return jsonVariantThread{t.Role, known(t.Node), t.Threads}
			})}
		}),
	}
	if p := c.PartsAt; p != nil {
		j.PartsAt = &jsonParting{p.Role, known(p.Node), p.IsMissing, known(p.Last), known(p.Here), each(p.There, func(b *trace.PartingBranch) jsonPartingBranch {
			return jsonPartingBranch{known(b.Node), b.Targets, b.Threads}
		}), p.More}
	}
	return j
}

func newJSONClassThread(t *trace.ClassThread) jsonClassThread {
	return jsonClassThread{
		t.Role, known(t.Node), t.Moves, t.Still, t.Crashed, t.Threads, t.Least, t.Most, t.Incomplete, t.Ends,
		each(t.IDs, func(id *trace.ClassThreadID) jsonThreadID { return jsonThreadID(*id) }),
	}
}

func newJSONNode(n *trace.CallNode) any {
	f := &n.Frame
	j := &jsonNode{
		known(n.Parent), f.Function, f.Short, f.Module, "", f.Runtime, f.IsInlined, f.IsWave, f.IsGuess,
		n.Threads, n.Ends, n.Targets, n.ClassCount, n.Classes,
	}
	if f.Function == "" && (f.Module != "" || f.Offset != 0) {
		j.Offset = hexNumber(f.Offset)
	}
	return j
}

func newJSONLine(n *trace.CallNode) any {
	f := &n.Frame
	return &jsonLine{known(n.Parent), n.Function, f.File, f.Line, f.Column, n.Threads, n.Ends, n.Targets, n.ClassCount, n.Classes}
}

func newJSONBuilds(m *trace.ModuleBuilds) any {
	return &jsonBuilds{m.Name, each(m.Builds, func(b *trace.TargetsOfBuild) jsonBuildsTargets {
		return jsonBuildsTargets{b.BuildID, b.Count, b.Targets}
	})}
}

func newJSONCollective(c *trace.Collective) any {
	return &jsonCollective{
		c.Group, c.Sequence, c.Operation, c.Ranks, c.Entered, c.Completed, c.Missing, c.Unrecorded,
		present(c.Different), present(c.Frames),
	}
}
