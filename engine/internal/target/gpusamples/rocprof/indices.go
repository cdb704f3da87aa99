// SPDX-License-Identifier: Apache-2.0

package rocprof

// indices maps the IDs of records to their indices. The IDs of a process count from one
// on, so that nearly all are in a list.
type indices struct {
	list   []int32 // index + listed; 0: none
	others map[uint64]int32
}

const (
	// several is the index of an ID that two records describe differently.
	several = -2
	// listed is added to indices in the list, so that none is 0.
	listed = 1 - several
	// maxGap bounds the unused IDs in the list before the next one.
	maxGap = 16
)

// add adds the index of a record under its ID. The index of an ID that is there already
// becomes several.
func (x *indices) add(id uint64, i int) {
	if _, again := x.get(id); again {
		i = several
	}
	if id >= uint64(len(x.list))+maxGap {
		if x.others == nil {
			x.others = map[uint64]int32{}
		}
		x.others[id] = int32(i) //nolint:gosec // bounded by keep
		return
	}
	for uint64(len(x.list)) <= id {
		x.list = append(x.list, 0)
	}
	x.list[id] = int32(i + listed) //nolint:gosec // bounded by keep
	delete(x.others, id)
}

// get returns the index of a record by its ID, which may be several.
func (x *indices) get(id uint64) (i int, known bool) {
	if id < uint64(len(x.list)) && x.list[id] != 0 {
		return int(x.list[id]) - listed, true
	}
	other, known := x.others[id]
	return int(other), known
}

// find returns the index of a record by its ID; -1 where there is none, or several.
func (x *indices) find(id uint64) int {
	if i, known := x.get(id); known && i != several {
		return i
	}
	return -1
}
