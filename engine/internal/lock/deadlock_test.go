// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"slices"
	"testing"
	"time"
)

func TestCircles(t *testing.T) {
	for _, c := range []struct {
		name string
		next []int
		want [][]int
	}{
		{"none", []int{-1, 0, 1}, nil},
		{"itself", []int{-1, 1, 1}, [][]int{{1}}},
		{"two", []int{1, 0}, [][]int{{0, 1}}},
		{"from its lowest node", []int{-1, 3, 1, 2}, [][]int{{1, 3, 2}}},
		{"with ways into it", []int{2, 2, 3, 2, 0}, [][]int{{2, 3}}},
		{"several", []int{4, 2, 1, 3, 0}, [][]int{{0, 4}, {1, 2}, {3}}},
	} {
		if got := Circles(c.next); !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
	}
}

func TestCirclingLeavesOutTheOthers(t *testing.T) {
	for _, c := range []struct {
		name  string
		edges [][]int
		want  []bool
	}{
		{"none", [][]int{{}, {}}, []bool{false, false}},
		{"a way into nothing", [][]int{{1}, {2}, {}}, []bool{false, false, false}},
		{"two", [][]int{{1}, {0}, {0}, {2}}, []bool{true, true, false, false}},
		{"two words", [][]int{{1, 2}, {0, 0}, {}}, []bool{true, true, false}},
		{"itself", [][]int{{0}, {0}}, []bool{true, false}},
	} {
		if got := circling(c.edges); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
	}
}

// A hundred thousand threads that wait for each other, or all for one, take no time.
func TestManyThreadsTakeNoTime(t *testing.T) {
	const n, most = 100_000, 5 * time.Second
	begin := time.Now()
	ring, star := make([][]int, n), make([][]int, n)
	next := make([]int, n)
	for i := range n {
		ring[i], star[i] = []int{(i + 1) % n}, []int{0, 0, 0}
		next[i] = (i + 1) % n
	}
	star[0] = nil
	if got := circling(ring); slices.Contains(got, false) {
		t.Error("a thread of the ring is missing")
	}
	if got := circling(star); slices.Contains(got, true) {
		t.Error("a thread that waits for one that does not")
	}
	if got := Circles(next); len(got) != 1 || len(got[0]) != n {
		t.Errorf("%d circles", len(got))
	}
	if took := time.Since(begin); took > most {
		t.Errorf("it took %v", took)
	}
}

// FuzzCircles has any graph: a circle leads back to its beginning, no node is in two, and a graph
// without those that circling removes has the same circles.
func FuzzCircles(f *testing.F) {
	f.Add([]byte{1, 0, 1, 4, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		next, edges := make([]int, len(data)), make([][]int, len(data))
		for i, b := range data {
			if next[i] = int(b); int(b) >= len(data) {
				next[i] = -1
				continue
			}
			edges[i] = []int{int(b), int(b)}
		}
		list := Circles(next)
		seen := map[int]bool{}
		for _, circle := range list {
			for k, node := range circle {
				if next[node] != circle[(k+1)%len(circle)] || seen[node] || node < circle[0] {
					t.Fatalf("%v: circle %v", next, circle)
				}
				seen[node] = true
			}
		}
		for i, stays := range circling(edges) {
			if seen[i] && !stays {
				t.Fatalf("%v: node %d is in a circle and was removed", next, i)
			}
			if !stays {
				next[i] = -1
			}
		}
		if again := Circles(next); !slices.EqualFunc(again, list, slices.Equal) {
			t.Errorf("%v, before removing %v", again, list)
		}
	})
}
