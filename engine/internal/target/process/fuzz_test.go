// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import "testing"

func FuzzMaps(f *testing.F) {
	f.Add([]byte("55d0-55e0 r-xp 00001000 fe:00 12 /usr/bin/sleep (deleted)\n7ffd0000-7ffd2000 rw-p 00000000 00:00 0 [stack]\n"))
	f.Add([]byte("0-1 ---p 0 0:0 0\n"))
	f.Add([]byte("1-0 r--p 0 0:0 0 a\\012b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseMaps(data)
		var end uint64
		for i := range list {
			m := &list[i]
			if err != nil || m.start < end || m.end <= m.start {
				t.Fatalf("mapping %d: %#x to %#x behind %#x, %v", i, m.start, m.end, end, err)
			}
			if find(list, m.start) != m || find(list, m.end-1) != m {
				t.Fatalf("mapping %d is not found", i)
			}
			end = m.end
		}
	})
}
