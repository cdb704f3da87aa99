// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bytes"
	"image/png"
)

// Brightness returns the mean brightness of the window's content, 0 to 1, and how many
// colours it has.
func (b *Browser) Brightness() (mean float64, colours int) {
	b.t.Helper()
	picture, err := png.Decode(bytes.NewReader(b.Screenshot()))
	if err != nil {
		b.t.Fatal(err)
	}
	seen := map[[3]uint32]bool{}
	size := picture.Bounds()
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			r, g, b, _ := picture.At(x, y).RGBA()
			seen[[3]uint32{r, g, b}] = true
			mean += float64(r+g+b) / 3 / 0xffff
		}
	}
	return mean / float64(size.Dx()*size.Dy()), len(seen)
}
