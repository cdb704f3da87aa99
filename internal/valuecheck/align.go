// SPDX-License-Identifier: Apache-2.0

package valuecheck

// align finds for each frame of a peer the same frame of ours, if any: in order,
// at the same PC, inlined or not, and of the same function where there is a
// choice.
func align(ours []Frame, theirs []PeerFrame) []*Frame {
	n, m := len(theirs), len(ours)
	best := make([][]int32, n+1) // the best score of theirs from i and ours from j on
	for i := range best {
		best[i] = make([]int32, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if s := similar(&theirs[i], &ours[j]); s > 0 {
				best[i][j] = max(best[i][j], best[i+1][j+1]+s)
			}
		}
	}
	match := make([]*Frame, n)
	for i, j := 0, 0; i < n && j < m; {
		s := similar(&theirs[i], &ours[j])
		switch {
		case s > 0 && best[i][j] == best[i+1][j+1]+s:
			match[i] = &ours[j]
			i, j = i+1, j+1
		case best[i][j] == best[i+1][j]:
			i++
		default:
			j++
		}
	}
	return match
}

// similar returns 0 for frames that are not the same.
func similar(p *PeerFrame, f *Frame) int32 {
	if p.PC != f.PC || (p.Kind == "inline") != f.Inlined {
		return 0
	}
	if p.Function == f.Function {
		return 3
	}
	return 2
}
