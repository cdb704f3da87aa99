module example.com/arch-riscv64

go 1.26.0

require github.com/unwindd/unwindd v0.0.0
