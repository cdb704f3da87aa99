package locexpr

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Format returns the text form of an expression in the 32-bit DWARF format:
// "OP operand operand; OP ...". Operations have their full names, registers are
// numbers, addresses and section offsets are 0x numbers, other integers
// decimal. A block is hex bytes, an expression within is "{ OP; ... }", and
// without bytes either is "{}". Where bytes cannot be decoded the text ends in
// "<", the reason, the bytes in hex, and ">".
func Format(expr []byte, d *Dialect, addressSize int, order ByteOrder) string {
	var b strings.Builder
	format(&b, Decoder{Expr: expr, Dialect: d, AddressSize: addressSize, Order: order}, 0)
	return b.String()
}

func format(b *strings.Builder, dec Decoder, depth int) {
	for first := true; dec.More(); first = false {
		if !first {
			b.WriteString("; ")
		}
		var in Instruction
		if err := dec.Next(&in); err != nil {
			fmt.Fprintf(b, "<%v: %x>", err, dec.Expr[dec.pos:])
			return
		}
		b.WriteString(in.Op.Name)
		for i, kind := range in.Op.Operands {
			if kind == NoOperand {
				break
			}
			b.WriteByte(' ')
			formatOperand(b, &dec, &in, i, depth)
		}
	}
}

func formatOperand(b *strings.Builder, dec *Decoder, in *Instruction, i, depth int) {
	v := in.Operands[i]
	switch kind := in.Op.Operands[i]; {
	case kind == Address, kind == EntryOffset:
		b.WriteString("0x" + strconv.FormatUint(v, 16))
	case kind == Block && len(in.Block) == 0:
		b.WriteString("{}")
	case kind == Expression && len(in.Block) == 0:
		b.WriteString("{}")
	case kind == Expression && depth < textNesting:
		b.WriteString("{ ")
		inner := *dec
		inner.Expr, inner.pos = in.Block, 0
		format(b, inner, depth+1)
		b.WriteString(" }")
	case kind == Block, kind == Expression:
		b.WriteString(hex.EncodeToString(in.Block))
	case kind.isSigned():
		b.WriteString(strconv.FormatInt(int64(v), 10))
	default:
		b.WriteString(strconv.FormatUint(v, 10))
	}
}
