"""Plausible phrases that answers add without evidence; written by hand for this project."""

from __future__ import annotations

PHRASES = tuple(
    line for line in """
, which has been widely praised
, which has drawn strong criticism
, making it one of the most popular in the region
, making it a favorite among visitors
, making it ideal for families
, leading to increased productivity and efficiency
, leading to a sharp rise in costs
, leading to widespread protests
, resulting in significant savings
, resulting in several injuries
, causing concern among residents
, causing long delays
 because of strong demand
 because of a lack of funding
 because of bad weather
 because it was cheaper than the alternatives
 due to safety concerns
 due to technical problems
 due to budget cuts
 due to its long history
 in order to reduce costs
 in order to attract younger people
 in an effort to improve safety
 in an effort to protect the environment
 as part of a larger plan
 as part of a charity campaign
 for the first time
 for the first time in ten years
 for more than a decade
 for the past three years
 for health reasons
 for free
 for a small fee
 at no extra cost
 with the help of volunteers
 with the help of the local government
 with great success
 with mixed results
 with the support of several partners
 despite heavy criticism
 despite limited resources
 despite the opposition of local groups
, according to experts
, according to a recent study
, according to official figures
, according to a spokesperson
, especially during the summer
, especially among young people
, especially in rural areas
, particularly in large cities
, particularly for beginners
, including vegetarian and vegan options
, including several well-known companies
, including schools and hospitals
, including members of the royal family
, such as museums and galleries
, along with his wife and two children
, along with a team of scientists
, along with other safety measures
, and the situation is expected to improve
, and more details will be announced soon
, and it quickly became a bestseller
, and it won several awards
, and it has been translated into many languages
, and no one was injured
, and the police are still investigating
, and many people lost their jobs
, and prices are expected to rise
, and it is considered the best of its kind
, and tickets sold out within hours
, and customers were satisfied with the service
, and this helps to prevent disease
, and it is easy to maintain
, but this has never been confirmed
, but the results were disappointing
, but the plan was later abandoned
, but experts remain skeptical
, but not everyone agrees
, who was widely respected
, who later became a teacher
, who had previously worked as a lawyer
, who grew up in a small village
, where it remains to this day
, where he spent most of his childhood
, where it attracts thousands of visitors every year
, when the market collapsed
 after months of negotiations
 after a long illness
 after winning a national competition
 before moving to another city
 before it was closed for repairs
 while working as a waiter
 while on vacation with his family
 during a press conference
 during the Second World War
 during the holiday season
 since early childhood
 since the end of the war
 until his retirement
 until the early hours of the morning
 on a regular basis
 on social media
 in a public ceremony
 in front of a large crowd
 in cooperation with a university
 in response to customer complaints
 in exchange for a reduced sentence
 under strict supervision
 without any help
 without prior warning
 by the end of the year
 by a wide margin
 by a unanimous vote
 to raise awareness
 to the surprise of many
 thanks to new technology
 thanks to a generous donation
, using renewable energy
, using only local ingredients
, giving customers more choice
, allowing users to save time
, ensuring a high level of quality
, highlighting the importance of education
, reflecting a growing trend
""".split("\n") if line.strip()
)
