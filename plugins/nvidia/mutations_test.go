// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"
)

// TestChangedCubins opens cubins of which some bytes were changed: answers pass the engine's
// checks, and none takes long.
func TestChangedCubins(t *testing.T) {
	random := rand.New(rand.NewPCG(48, 3)) //nolint:gosec // the same each time
	files, err := filepath.Glob("testdata/*.cubin")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	count := 60
	if testing.Short() {
		count = 10
	}
	for _, name := range files {
		whole := fixture(t, filepath.Base(name)).raw
		for i := range count {
			data := bytes.Clone(whole)
			for range 1 + random.IntN(8) {
				at := random.IntN(len(data))
				data[at] = [...]byte{0, 1, 0x7f, 0xff, byte(random.IntN(256))}[random.IntN(5)]
			}
			c, err := readCubin(data)
			if err != nil {
				continue
			}
			start := time.Now()
			c.open(t)
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("%s, change %d: %v", name, i, took)
			}
		}
	}
}
