// SPDX-License-Identifier: Apache-2.0

package codeflow

// heap has the pending points, the one at the lowest address first.
type heap[S any] []*Point[S]

func (h *heap[S]) push(p *Point[S]) {
	p.isWaiting = true
	list := append(*h, p)
	i := len(list) - 1
	for i > 0 && list[(i-1)/2].Address > p.Address {
		list[i] = list[(i-1)/2]
		i = (i - 1) / 2
	}
	list[i] = p
	*h = list
}

func (h *heap[S]) pop() *Point[S] {
	list := *h
	first, last := list[0], list[len(list)-1]
	list = list[:len(list)-1]
	for i := 0; len(list) > 0; {
		child := 2*i + 1
		if child+1 < len(list) && list[child+1].Address < list[child].Address {
			child++
		}
		if child >= len(list) || list[child].Address >= last.Address {
			list[i] = last
			break
		}
		list[i] = list[child]
		i = child
	}
	*h = list
	first.isWaiting = false
	return first
}
