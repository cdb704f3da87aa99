! Arrays as Fortran has them: column by column, with bounds of their own, and with
! descriptors that say where they are, how long, and how far apart their elements are.
module shapes
  implicit none
  type point
    integer :: x, y
  end type
  integer :: table(2:4, -1:1)
contains
  subroutine inner(a, b, name, n)
    real, intent(in) :: a(:)
    integer, intent(in) :: b(:, :)
    character(len=*), intent(in) :: name
    integer, intent(in) :: n
    integer :: local(n)
    integer, allocatable :: none(:)
    integer, allocatable :: some(:)
    type(point) :: p
    logical :: yes
    complex :: z
    real(8), pointer :: ptr(:)
    real(8), target :: goal(3)
    allocate(some(5:8))
    some = (/ 50, 60, 70, 80 /)
    local = n
    p%x = 3; p%y = -4
    yes = .not. allocated(none)
    z = (1.5, -2.5)
    goal = (/ 1d0, 2d0, 3d0 /)
    ptr => goal(1:3:2)
    call abort()
  end subroutine
end module
program main
  use shapes
  implicit none
  real :: v(10)
  integer :: m(3, 2)
  integer :: i
  v = (/ (i * 1.5, i = 1, 10) /)
  m = reshape((/ 1, 2, 3, 4, 5, 6 /), (/ 3, 2 /))
  table = 7
  table(3, 0) = 9
  call inner(v(8:2:-2), m, "hello", 4)
end program
