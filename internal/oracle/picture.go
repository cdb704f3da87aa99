// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bytes"
	"image/png"
)

// Brightness is the mean brightness of what the window shows, from 0 to 1.
func (b *Browser) Brightness() float64 {
	b.t.Helper()
	picture, err := png.Decode(bytes.NewReader(b.Screenshot()))
	if err != nil {
		b.t.Fatal(err)
	}
	size, sum := picture.Bounds(), 0.0
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			red, green, blue, _ := picture.At(x, y).RGBA()
			sum += float64(red+green+blue) / 3 / 0xffff
		}
	}
	return sum / float64(size.Dx()*size.Dy())
}
