// SPDX-License-Identifier: Apache-2.0

// Package flightrecorder reads what PyTorch's flight recorder of collective operations (of NCCL, RCCL, gloo and others)
// dumps as JSON, a file for each rank, and joins ranks: who waits in which operation, and who has not entered it.
package flightrecorder

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Unknown is the rank of a dump that does not tell it.
const Unknown = -1

// Dump is the part of a rank's dump that Join needs.
type Dump struct {
	Path string `json:"path"`
	// Rank is the rank among all processes of the job, or Unknown.
	Rank int64 `json:"rank"`
	// Newest is when the newest record was made, in nanoseconds since 1970; 0: there is none.
	Newest int64 `json:"newest,omitempty"`
	// IsCut is true where the recorder may have had further records: its buffer has overwritten the oldest,
	// or only some were dumped.
	IsCut  bool    `json:"cut,omitempty"`
	Groups []Group `json:"groups,omitempty"` // by name
}

// Group is the operations of a process group.
type Group struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Ranks are its members, ranks among all processes, in order; nil: they are not known.
	Ranks []int64 `json:"ranks,omitempty"`
	// Enqueued and Completed are the numbers of the last operation that was enqueued and that completed; 0: none.
	Enqueued  int64 `json:"enqueued,omitempty"`
	Completed int64 `json:"completed,omitempty"`
	// Records are of operations that have not completed, and of the last ones that have, by their numbers.
	Records []Record `json:"records,omitempty"`
	// Pairs are operations between two ranks that have not completed.
	Pairs []Pair `json:"pairs,omitempty"`
}

// Record is a collective operation as one rank has it.
type Record struct {
	Sequence int64 `json:"sequence"`
	// Operation is its name: "nccl:all_reduce"; of several that were launched as one all names, " + " between them.
	Operation string `json:"operation"`
	// Sizes describes its inputs and outputs: "4x3 Float -> 4x3 Float".
	Sizes string `json:"sizes,omitempty"`
	// Agreed is the part of the sizes that all ranks must have in common.
	Agreed      string `json:"agreed,omitempty"`
	IsCompleted bool   `json:"completed,omitempty"`
	// Frames are where it was called, innermost first: "function file:line".
	Frames []string `json:"frames,omitempty"`
}

// Pair is an operation between two ranks.
type Pair struct {
	Sequence  int64  `json:"sequence"`
	Operation string `json:"operation"` // "nccl:send 1->2"
	// From and To are numbers within the group; Unknown: they are not known.
	From   int64    `json:"from"`
	To     int64    `json:"to"`
	IsSend bool     `json:"send,omitempty"`
	Frames []string `json:"frames,omitempty"`
}

// Encode returns a dump as JSON, for Decode. Equal dumps give equal bytes.
func (d *Dump) Encode() []byte {
	b, err := json.Marshal(d)
	if err != nil {
		panic(err) // it has no types that JSON lacks
	}
	return b
}

// Decode reads the result of Encode.
func Decode(data []byte) (*Dump, error) {
	d := &Dump{}
	if err := json.Unmarshal(data, d); err != nil {
		return nil, fmt.Errorf("a flight recorder's dump: %w", err)
	}
	for i := range d.Groups {
		g := &d.Groups[i]
		isOrdered := slices.IsSorted(g.Ranks) && slices.IsSortedFunc(g.Records, func(a, b Record) int { return int(min(max(a.Sequence-b.Sequence, -1), 1)) })
		if !isOrdered || len(g.Ranks) > maxRanks || g.Enqueued > maxSequence || g.Completed > maxSequence || len(g.Records) > 0 && g.Records[len(g.Records)-1].Sequence > maxSequence {
			return nil, errors.New("a flight recorder's dump: its lists are not in order, or its numbers too large")
		}
	}
	return d, nil
}

// RankOf returns the rank in the name of a dump's file: PyTorch puts it behind a prefix that may be set, so it
// is the number at the end, before extensions such as .json and .gz. Unknown: there is none.
func RankOf(path string) int64 {
	name := filepath.Base(path)
	for slices.Contains([]string{".json", ".txt", ".gz", ".zst", ".xz", ".bz2", ".lz4"}, strings.ToLower(filepath.Ext(name))) {
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	digits := name[len(strings.TrimRight(name, "0123456789")):]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return Unknown
	}
	return n
}

// isMember reports whether a rank is a member of all groups whose members are known. A rank records only groups
// that it is in.
func (d *Dump) isMember(rank int64) bool {
	for i := range d.Groups {
		if g := &d.Groups[i]; g.Ranks != nil {
			if _, ok := slices.BinarySearch(g.Ranks, rank); !ok {
				return false
			}
		}
	}
	return true
}

// short writes ranks in short: "0-5,7". They are in order.
func short(ranks []int64) string {
	var out []byte
	for i := 0; i < len(ranks); {
		end := i
		for end+1 < len(ranks) && ranks[end+1] == ranks[end]+1 {
			end++
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, ranks[i], 10)
		if end > i {
			out = strconv.AppendInt(append(out, '-'), ranks[end], 10)
		}
		i = end + 1
	}
	return string(out)
}
