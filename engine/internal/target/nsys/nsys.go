// SPDX-License-Identifier: Apache-2.0

// Package nsys reads exports of NVIDIA's Nsight Systems (nsys export): databases of SQLite, and
// lines of JSON. Ranges of NVTX, calls of CUDA and of the operating system become stacks, kernels
// are under the call that launched them, and samples of the CPU have their own stacks.
package nsys

import (
	"bytes"
	"fmt"
	"sort"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/sqlite"
	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
)

// Form is the name of the format.
const Form = "an export of Nsight Systems"

// value is a value of a row.
type value struct {
	n        int64
	isNumber bool
	text     string
}

// number returns a number; -1 where there is none.
func (v *value) number() int64 {
	if !v.isNumber {
		return -1
	}
	return v.n
}

// table is a table of exports that is read.
type table struct {
	columns []string
	add     func(c *collector, row []value)
}

// tables are the tables that are read, by name. In old exports a column may be missing.
var tables = map[string]table{
	"StringIds":   {[]string{"id", "value"}, (*collector).addString},
	"ThreadNames": {[]string{"globalTid", "nameId"}, (*collector).addThreadName},
	"PROCESSES":   {[]string{"globalPid", "pid", "name"}, (*collector).addProcess},
	"CUPTI_ACTIVITY_KIND_KERNEL": {
		[]string{"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName", "shortName", "mangledName"}, (*collector).addKernel,
	},
	"CUPTI_ACTIVITY_KIND_MEMCPY":     {[]string{"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "copyKind"}, (*collector).addCopy},
	"CUPTI_ACTIVITY_KIND_MEMSET":     {[]string{"start", "end", "deviceId", "streamId", "correlationId", "globalPid"}, (*collector).addSet},
	"CUPTI_ACTIVITY_KIND_RUNTIME":    {[]string{"start", "end", "globalTid", "nameId", "correlationId", "callchainId"}, (*collector).addCall},
	"OSRT_API":                       {[]string{"start", "end", "globalTid", "nameId", "callchainId"}, (*collector).addSystemCall},
	"NVTX_EVENTS":                    {[]string{"start", "end", "globalTid", "textId", "text", "eventType"}, (*collector).addRange},
	"COMPOSITE_EVENTS":               {[]string{"id", "start", "globalTid", "cpu"}, (*collector).addSample},
	"SAMPLING_CALLCHAINS":            {chainColumns, func(c *collector, row []value) { c.addChain(sampleChains, row) }},
	"CUDA_CALLCHAINS":                {chainColumns, func(c *collector, row []value) { c.addChain(callChains, row) }},
	"OSRT_CALLCHAINS":                {chainColumns, func(c *collector, row []value) { c.addChain(systemChains, row) }},
	"TARGET_INFO_SESSION_START_TIME": {[]string{"utcEpochNs"}, (*collector).addStartTime},
}

var chainColumns = []string{"id", "stackDepth", "symbol", "module", "originalIP", "kernelMode", "unresolved"}

// AcceptsDatabase reports whether a file is a database with tables of an export.
func AcceptsDatabase(data []byte) bool {
	if !bytes.HasPrefix(data, []byte(sqlite.Magic)) {
		return false
	}
	d, _ := sqlite.Open(data) // the tables before an error count
	return d != nil && d.Table("StringIds") != nil && (d.Table("META_DATA_EXPORT") != nil || d.Table("TARGET_INFO_SYSTEM_ENV") != nil || d.Table("ANALYSIS_DETAILS") != nil ||
		d.Table("CUPTI_ACTIVITY_KIND_KERNEL") != nil || d.Table("CUPTI_ACTIVITY_KIND_RUNTIME") != nil || d.Table("NVTX_EVENTS") != nil || d.Table("COMPOSITE_EVENTS") != nil)
}

// ReadDatabase reads an export to SQLite. What follows an error in a table is lost, which is a
// problem.
func ReadDatabase(path string, data []byte) (*stacktree.File, error) {
	d, err := sqlite.Open(data)
	if d == nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c := newCollector(path)
	if err != nil {
		c.Problem("%v: tables may be missing", err)
	}
	var others []string
	for _, t := range d.Tables() {
		known, ok := tables[t.Name]
		if !ok {
			if t.Has("start") && !t.IsEmpty() {
				others = append(others, t.Name)
			}
			continue
		}
		row := make([]value, len(known.columns))
		err := t.Each(known.columns, func(values []sqlite.Value) error {
			for i := range values {
				row[i] = value{}
				row[i].n, row[i].isNumber = values[i].Int()
				if !row[i].isNumber {
					row[i].text = values[i].Text()
				}
			}
			known.add(c, row)
			return nil
		})
		if err != nil {
			c.Problem("table %s: %v: what follows in it is lost", t.Name, err)
		}
	}
	if len(others) > 0 {
		sort.Strings(others)
		c.Problem("tables that are not shown: %s", strings.Join(others, ", "))
	}
	return c.build(), nil
}
