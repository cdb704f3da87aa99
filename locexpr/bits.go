// SPDX-License-Identifier: Apache-2.0

package locexpr

// copyBits copies n bits from bit srcBit of the stream src to bit dstBit of the
// stream dst. The other bits of dst stay as they are. Both ranges must lie
// inside their slices, which must not overlap.
func copyBits(dst []byte, dstBit uint64, src []byte, srcBit, n uint64, order ByteOrder) {
	if dstBit%8 == 0 && srcBit%8 == 0 {
		whole := n / 8
		copy(dst[dstBit/8:dstBit/8+whole], src[srcBit/8:])
		dstBit, srcBit, n = dstBit+whole*8, srcBit+whole*8, n%8
	}
	for n > 0 {
		k := min(n, 8-dstBit%8)
		putBits(dst, dstBit, k, getBits(src, srcBit, k, order), order)
		dstBit, srcBit, n = dstBit+k, srcBit+k, n-k
	}
}

// getBits returns the k bits, 1 to 8, from bit on, as an integer whose order of
// bits is that of a byte.
func getBits(src []byte, bit, k uint64, order ByteOrder) byte {
	i, shift := bit/8, bit%8
	var pair uint16
	if order == BigEndian {
		pair = uint16(src[i]) << 8
		if shift+k > 8 {
			pair |= uint16(src[i+1])
		}
		return byte(pair<<shift>>8) >> (8 - k)
	}
	pair = uint16(src[i])
	if shift+k > 8 {
		pair |= uint16(src[i+1]) << 8
	}
	return byte(pair>>shift) & (0xff >> (8 - k))
}

// putBits stores the k bits of v, which must fit in the byte of dst that holds
// bit.
func putBits(dst []byte, bit, k uint64, v byte, order ByteOrder) {
	shift := bit % 8
	if order == BigEndian {
		shift = 8 - shift - k
	}
	mask := byte(0xff>>(8-k)) << shift
	dst[bit/8] = dst[bit/8]&^mask | v<<shift&mask
}

// clearPadding clears the bits of the last byte of a stream of n bits that do
// not belong to it.
func clearPadding(stream []byte, n uint64, order ByteOrder) {
	if n%8 == 0 {
		return
	}
	if order == BigEndian {
		stream[n/8] &= 0xff << (8 - n%8)
	} else {
		stream[n/8] &= 0xff >> (8 - n%8)
	}
}
